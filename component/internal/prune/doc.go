// Package prune sees to it that nothing of others is deleted together with what is deleted: it finds the
// instances of a type, keeps new ones from being created while its definition is deleted, protects definitions
// against deletion by others, and wakes those that wait until the instances are gone.
package prune
