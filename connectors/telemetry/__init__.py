"""Sources that listen for the telemetry of machines and programs: syslog, statsd and OTLP over HTTP."""
