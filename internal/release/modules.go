package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
)

// bom is a software bill of materials: a document of CycloneDX 1.6. It has neither a time nor a serial number, so that it is the
// same for the same binary.
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// modules lists what the binary consists of, as it says itself: the module of the program, those that it links, and Go's library.
func (b *binary) modules() ([]byte, error) {
	program := library(&b.info.Main)
	program.Type, program.Name = "application", b.name
	program.PURL += "#" + b.main
	for _, s := range b.info.Settings {
		if strings.HasPrefix(s.Key, "GO") || s.Key == "CGO_ENABLED" || s.Key == "-trimpath" {
			program.Properties = append(program.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	doc := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: program}, Components: []component{}}
	for _, m := range b.info.Deps {
		doc.Components = append(doc.Components, library(m))
	}
	doc.Components = append(doc.Components, library(&debug.Module{Path: "std", Version: strings.TrimPrefix(b.info.GoVersion, "go")}))
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

func library(m *debug.Module) component {
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
