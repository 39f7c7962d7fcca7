// Package corpus holds operators to test package fault with: one correct operator and
// variants of it that each break one invariant, re-creations of published bugs of other
// operators, and correct operators of other styles. They are files of its tests, because nothing else needs them.
package corpus
