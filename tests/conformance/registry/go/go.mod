// Calls every method of franz-go's schema registry client; tests/servers builds it.
module tidegate/registrycalls

go 1.24.0

require github.com/twmb/franz-go/pkg/sr v1.8.0
