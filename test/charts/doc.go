// Package charts renders public charts with generator/helm and with Helm itself, and compares the results object by
// object. Only tests are here. It is a module of its own because Helm's actions decide about versions of modules that
// devcluster shares.
package charts
