// Package charts renders public charts with generator/helm and with Helm itself, and compares the results object by
// object. Some of them are installed on a control plane, left alone, upgraded and deleted. A
// release that Helm has installed becomes a component, and a release again. Only tests are here. It is a module of its own
// because Helm's actions decide about versions of modules that devcluster shares.
package charts
