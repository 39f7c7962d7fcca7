package nats

import "embed"

// CRDs holds the definitions of the kinds.
//
//go:embed crds/*.yaml
var CRDs embed.FS
