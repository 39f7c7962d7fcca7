package nats

import "embed"

// CRDs contains the CustomResourceDefinitions of the kinds.
//
//go:embed crds/*.yaml
var CRDs embed.FS
