// Package scaffold makes the module of a new operator: at most 8 files, which belong to the user from then on.
//
// A [Project] says what is made. [Project.Check] finds what is wrong with it, and [Project.Create] writes it: the files from
// templates, go.mod and go.sum by the go command, deep copies and the CRD by package kindgen. Nothing is left behind if any
// of this fails.
package scaffold
