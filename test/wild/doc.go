// Package wild plays public operators, as their authors publish them, through every crash and every single fault
// of a scenario. docs/in-the-wild.md lists what was found. make deep runs it.
package wild
