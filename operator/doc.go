// Package operator turns controllers into a program: one binary that runs them and prints the
// manifests that install it.
//
// An operator's main function calls [Main] and nothing else. Without a command, the binary runs
// the manager. The command "manifests" prints CRDs, roles and the Deployment; "version" prints the
// version; "plan" prints what the next pass over an object would do. The manifests are derived from the controllers ([Controller].Needs) and the flags, so
// they always match the code. [Manifests] returns them as objects. [Run] is Main for tests.
//
// For secrets, use flags of type [Secret], which say where the secret is, or [File], and bind them
// with FlagSet.Var. The manifests can then mount keys of Secrets for them:
//
//	manifests --from-secret password=api-login/password
//
// The manager provides leader election, metrics, a graceful shutdown, and these endpoints:
//
//   - /livez fails when a pass is stuck.
//   - /readyz fails, with the reason, while a kind cannot be read, and after the start until all
//     permissions are granted, those of sources included. It and the log name what is missing and the
//     command that grants it. The process does not end for that, because roles may be applied after the
//     Deployment: it goes on within a second of the grant, and until then a rollout does not complete.
//   - /debug/operator, on loopback, says in JSON which health checks fail, which permissions are missing,
//     and how many requests went to the API server, by verb and resource, with those that were forbidden.
//     /debug/metrics has the metrics. The page Operator of `kubectl trimtab ui --operator` shows both.
//   - /debug/trace, on loopback, shows the last events of all passes (package trace), or those of
//     one object with ?kind=Stream&namespace=default&name=orders. Add &format=text for readable
//     output. The flag --trace appends the same events to a file.
//
// The cache drops managed fields. Of Secrets it holds only the metadata; their contents are read
// from the API server.
//
// To test an operator, run it against the API server of package testenv, installed from its own
// manifests and with the permissions that they grant (package operatortest):
//
//	op := operatortest.Run(t, options(), "--greeting=ahoy")
//	... // create objects with op.Client in op.Namespace
//
// Ordinary controllers of controller-runtime, webhooks, indexes and runnables can run next to
// trimtab's controllers: [Options.Setup] gets the manager.
//
// Packages component, external and loop make controllers. Start with the package example.
package operator
