-- Totals of each campaign, and how likes of the last hour compare with those of the hour before.
WITH clock AS (SELECT max(at_ms) AS now FROM likes),
counted AS (SELECT campaign, at_ms, CASE WHEN liked THEN 1 ELSE -1 END AS n FROM likes),
liked AS (
    SELECT campaign,
        sum(n) AS likes,
        sum(CASE WHEN at_ms > now - 3600000 THEN n ELSE 0 END) AS last_hour,
        sum(CASE WHEN at_ms <= now - 3600000 AND at_ms > now - 7200000 THEN n ELSE 0 END) AS hour_before
    FROM counted, clock GROUP BY campaign
)
SELECT campaign,
    (SELECT count(*) FROM posts WHERE posts.campaign = liked.campaign) AS posts,
    (SELECT count(*) FROM comments WHERE comments.campaign = liked.campaign) AS comments,
    likes, last_hour, last_hour - hour_before AS trend
FROM liked ORDER BY campaign
