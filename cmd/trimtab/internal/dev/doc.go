// Package dev runs an operator while somebody writes it. `trimtab dev` is its command.
//
// [Run] generates, builds and installs the operator of a module, runs it under the permissions of its own manifests, and applies
// the module's examples. After each saved file it does so again and hands over: the old process finishes its passes and ends
// before the new one starts. What cannot be built, or does not fit the objects that the cluster has, replaces nothing.
package dev
