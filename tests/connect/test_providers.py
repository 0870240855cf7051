import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.plugins.config_providers import resolved
from tidegate.kit.errors import UsageError
from tidegate.kit.scrubbing import Secrets, knowing

APACHE = "org.apache.kafka.common.config.provider"


@pytest.fixture
def worker(tmp_path, monkeypatch):
    (tmp_path / "secrets.properties").write_text("password=hunter2\n")
    (tmp_path / "token").write_text("t0k")
    monkeypatch.setenv("TOY_USER", "ada")
    monkeypatch.setenv("HOME_SECRET", "no")
    return {
        "config.providers": "file, dir,env",
        "config.providers.file.class": f"{APACHE}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "config.providers.dir.class": f"{APACHE}.DirectoryConfigProvider",
        "config.providers.env.class": f"{APACHE}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "TOY_.*",
    }


def test_placeholders_are_replaced_wherever_they_stand(worker, tmp_path):
    made = resolved(
        worker,
        {
            "url": f"jdbc:x://${{env:TOY_USER}}:${{file:{tmp_path}/secrets.properties:password}}@h/d",
            "token": f"${{dir:{tmp_path}:token}}",
            "plain": "$x ${} ${no}",
        },
    )
    assert made == {"url": "jdbc:x://ada:hunter2@h/d", "token": "t0k", "plain": "$x ${} ${no}"}


@pytest.mark.parametrize("text", ["${vault:a:b}", "${env:HOME_SECRET}", "${env:TOY_ABSENT}", "${env:}", "${:x}"])
def test_placeholders_without_a_value_stay(worker, text):
    assert resolved(worker, {"x": text}) == {"x": text}


def test_paths_that_are_not_allowed_are_refused(worker):
    with pytest.raises(UsageError, match="allowed.paths"):
        resolved(worker, {"x": "${file:/etc/passwd:root}"})


def test_an_unknown_provider_is_named():
    with pytest.raises(UsageError, match="config.providers.x.class"):
        resolved({"config.providers": "x", "config.providers.x.class": "a.B"}, {})


def test_without_providers_nothing_is_touched():
    assert resolved({}, {"x": "${env:HOME}"}) == {"x": "${env:HOME}"}


@given(st.text(alphabet="${}:env TOY_USER/", max_size=30))
def test_any_text_is_resolved_or_stays(text):
    worker = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}
    assert isinstance(resolved(worker, {"x": text})["x"], str)


def test_values_from_a_provider_are_hidden_in_texts(monkeypatch):
    """Also where the key that it stands in is none for a secret."""
    monkeypatch.setenv("TOY_WORD", "hunter22hunter22")
    monkeypatch.setenv("TOY_PORT", "5432")
    worker = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}
    secrets = Secrets()
    with knowing(secrets):
        config = resolved(worker, {"connection.url": "jdbc:x://h:${env:TOY_PORT}/${env:TOY_WORD}"})
    assert config == {"connection.url": "jdbc:x://h:5432/hunter22hunter22"}
    assert secrets.scrub(f"cannot open {config['connection.url']}") == "cannot open jdbc:x://h:5432/[hidden]"
