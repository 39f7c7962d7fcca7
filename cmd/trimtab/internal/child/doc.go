// Package child starts processes that end with this one, however this one ends.
package child
