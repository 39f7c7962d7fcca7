// Package operator makes a program of controllers: one binary that runs them and prints
// what installs it.
//
// [Main] is all of an operator's main function. Without a command the binary runs the
// manager; "manifests" prints CRDs, roles and the deployment, "version" the version. As
// manifests are derived from the controllers ([Controller].Needs) and from the flags, they
// cannot differ from the code. [Manifests] returns them as objects, [Run] is Main for tests.
//
// The manager brings leader election, metrics, a graceful stop, and
//
//   - /livez, which fails when a pass is stuck;
//   - /readyz, which fails with the reason: a permission that is missing, a kind that
//     cannot be read;
//   - /debug/trace on loopback, the last things that all passes did (package trace), of one
//     object with ?kind=Stream&namespace=default&name=orders, for people with &format=text;
//     --trace appends the same to a file.
//
// Its cache drops managed fields and holds nothing of Secrets but their metadata: they are
// read live.
//
// What a controller does is not here, see packages loop and external. Start with the
// package's example.
package operator
