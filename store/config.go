package store

// Config is `database:`.
type Config struct {
	// URL is a PostgreSQL URL or DSN; empty: a private server under the data folder.
	URL string `yaml:"url"`
}
