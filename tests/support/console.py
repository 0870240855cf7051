"""The console's pages by an HTTP client."""

from __future__ import annotations

import html
import re

import requests

__all__ = ["Visitor"]


class Visitor:
    """Asks for pages and sends forms, with the token of the first page."""

    def __init__(self, url: str) -> None:
        self._session, self._url = requests.Session(), url
        self._session.headers["Origin"] = url
        page = self._session.get(url, timeout=60).text
        self._token = re.search(r'"X-CSRF-Token": "([^"]+)"', page)[1]

    def get(self, path: str, status: int = 200) -> str:
        answer = self._session.get(self._url + path, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.text

    def download(self, path: str) -> bytes:
        answer = self._session.get(self._url + path, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.content

    def post(self, path: str, status: int = 303, **form: object) -> str:
        """The page, or the path that it leads to."""
        form["csrf"] = self._token
        answer = self._session.post(self._url + path, data=form, timeout=60, allow_redirects=False)
        assert answer.status_code == status, answer.text
        return answer.headers["location"] if status == 303 else answer.text

    def search(self, topic: str, query: str) -> tuple[str, list[str], int]:
        """Search as the page does, step by step; the last status, the rows, and the number of steps."""
        part, rows, steps = self.get(f"/topics/{topic}/records/begin?{query}"), [], 1
        while True:
            rows += re.findall(r"<tr>.*?</tr>", part)
            if 'hx-trigger="load' not in part:
                return html.unescape(re.search(r'role="status">(.*?)\.\n', part)[1]), rows, steps
            fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part)
            form = {name: html.unescape(value) for name, value in fields}
            part, steps = self.post(f"/topics/{topic}/records/more", 200, **form), steps + 1
