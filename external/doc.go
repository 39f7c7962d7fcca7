// Package external reconciles custom resources that each stand for one thing outside the
// cluster: a stream, a database, a DNS record.
package external
