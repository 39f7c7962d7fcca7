// Package postgres is an operator of databases, roles and grants of PostgreSQL servers. Its command is
// cmd/postgres-operator.
package postgres
