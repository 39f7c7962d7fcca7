package helm

import (
	"errors"
	"regexp"

	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// quoted is a value in a message about a schema.
var quoted = regexp.MustCompile(`(?s)(- at '[^']*': )'.*?' (does not match pattern|is not valid)`)

// discreet returns the error of a schema on one line, without values, which may be secret.
func discreet(err error) error {
	return rendering.OneLine(errors.New(quoted.ReplaceAllString(err.Error(), "${1}the value $2")))
}
