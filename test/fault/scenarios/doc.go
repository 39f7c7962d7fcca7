// Package scenarios holds the stories that trimtab's own engines and samples must survive:
// each is played through every crash and every single fault by package fault. Some are also
// played live, by test/crash.
package scenarios
