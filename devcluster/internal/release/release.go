// Package release gives the linked Kubernetes code its version.
package release

import (
	"fmt"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Version is the Kubernetes release that go.mod pins.
const Version = "v1.37.1"

// Kubernetes' own release build sets these three with the linker's -X flag; by
// default the version is v0.0.0-master+$Format:%H$, which neither kubectl nor
// Helm can parse. go install and go run of this module cannot carry linker
// flags, and version.SetDynamicVersion alone refuses another major or minor
// than the linked one, so the variables are reached by name. A rename upstream
// fails the link, not the run.

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string

// Apply makes every Kubernetes component in this process report Version. Call
// it before any of them starts.
func Apply() error {
	gitVersion, gitMajor, gitMinor = Version, "1", "37"
	if err := version.SetDynamicVersion(Version); err != nil {
		return fmt.Errorf("set the Kubernetes version: %w", err)
	}
	return nil
}
