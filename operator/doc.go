// Package operator makes a program of controllers: one binary that runs them and prints
// what installs it.
//
// [Main] is all of an operator's main function. Without a command the binary runs the
// manager; "manifests" prints CRDs, roles and the deployment, "version" the version. As
// manifests are derived from the controllers ([Controller].Needs) and from the flags, they
// cannot differ from the code. [Manifests] returns them as objects, [Run] is Main for tests.
//
// What is secret is a flag of type [Secret], which says where the secret is, or [File], bound
// with FlagSet.Var. Manifests then mount keys of Secrets for them:
//
//	manifests --from-secret password=vendor-login/password
//
// The manager brings leader election, metrics, a graceful stop, and
//
//   - /livez, which fails when a pass is stuck;
//   - /readyz, which fails with the reason: a kind that cannot be read, and from the start
//     until all are granted, a permission that is missing;
//   - /debug/trace on loopback, the last things that all passes did (package trace), of one
//     object with ?kind=Stream&namespace=default&name=orders, for people with &format=text;
//     --trace appends the same to a file.
//
// Its cache drops managed fields and holds nothing of Secrets but their metadata: they are
// read live.
//
// A test of an operator runs it against the API server of package testenv, installed by its own
// manifests and under the account and rules that those give it (package operatortest):
//
//	op := operatortest.Run(t, options(), "--greeting=ahoy")
//	... // create objects with op.Client in op.Namespace
//
// What is not a controller of this framework runs beside: [Options.Setup] gets the manager, for
// ordinary controllers of controller-runtime, webhooks, indexes and runnables.
//
// What a controller does is not here, see packages loop and external. Start with the
// package's example.
package operator
