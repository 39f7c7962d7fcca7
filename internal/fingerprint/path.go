package fingerprint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Path is the place of a value in an object, as the elements of a field set from the root:
// "f:spec", "f:containers", `k:{"name":"web"}`.
type Path []string

// String returns the path as users write it: spec.containers[name=web].image. It holds no values
// but those of keys and of sets.
func (p Path) String() string {
	var b strings.Builder
	for _, element := range p {
		if len(element) < len(prefixField) {
			continue
		}
		kind, rest := element[:len(prefixField)], element[len(prefixField):]
		switch {
		case kind == prefixKey:
			b.WriteString("[" + keyString(rest) + "]")
		case kind != prefixField:
			b.WriteString("[" + rest + "]")
		case strings.ContainsAny(rest, "./[]"):
			b.WriteString("[" + rest + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(rest)
		}
	}
	return b.String()
}

func keyString(text string) string {
	var key map[string]any
	if json.Unmarshal([]byte(text), &key) != nil {
		return text
	}
	parts := make([]string, 0, len(key))
	for name, v := range key {
		parts = append(parts, fmt.Sprintf("%s=%v", name, v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func (p Path) child(element string) Path {
	return append(slices.Clip(p), element)
}
