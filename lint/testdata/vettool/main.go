// Command vettool is a tool of go vet with nothing but the analyzers: go vet keeps what it found until its tool changes.
package main

import "github.com/trimtab-dev/trimtab/lint"

func main() { lint.Vet() }
