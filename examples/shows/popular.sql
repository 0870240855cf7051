SELECT title, count(*) AS viewers, sum(minutes) AS minutes
FROM (SELECT viewer, title, max(minute) AS minutes FROM positions WHERE viewer <> 'anna' GROUP BY viewer, title) AS latest
GROUP BY title ORDER BY title
