// Package running is what a running operator says about itself at its debug address, beside its flight recorder and its metrics:
// package operator writes it, and the dashboard of cmd/trimtab reads it.
package running

import "time"

// Path is where an operator says it.
const Path = "/debug/operator"

// Operator describes a process.
type Operator struct {
	// Name, Version and Namespace are those of the operator; Started is when the process was.
	Name      string    `json:"name"`
	Version   string    `json:"version,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Started   time.Time `json:"started"`
	// Lease is what the replicas of the operator compete for, as NAMESPACE/NAME. It is empty if there is no leader election.
	Lease string `json:"lease,omitempty"`
	// Leads reports whether this process works on objects. Without leader election, it does once it has started.
	Leads bool `json:"leads"`
	// Controllers are those of trimtab.
	Controllers []Controller `json:"controllers,omitempty"`
	// Failing are the health checks that fail, by name, those of /livez first.
	Failing []Check `json:"failing,omitempty"`
	// Checks is how many health checks there are.
	Checks int `json:"checks"`
	// Missing are the permissions that the operator needs and lacked when it asked last, in the notation of kubectl auth can-i. It
	// asks until it has all of them, and not again.
	Missing []string `json:"missing,omitempty"`
	// Grant is the command that grants all permissions that the operator needs.
	Grant string `json:"grant,omitempty"`
	// Requests are those to the API server since the start, by verb and resource.
	Requests []Requests `json:"requests,omitempty"`
}

// Controller is one of an operator's, and the kind that it reconciles.
type Controller struct {
	Name       string `json:"name"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Check is a health check that fails.
type Check struct {
	// Endpoint is livez or readyz.
	Endpoint string `json:"endpoint"`
	Name     string `json:"name"`
	Problem  string `json:"problem"`
}

// Requests are requests to the API server with one verb for one resource.
type Requests struct {
	// Verb is that of a permission: get, list, watch, create, update, patch, delete or deletecollection.
	Verb string `json:"verb"`
	// Resource is a resource with its group and subresource, such as deployments.apps/scale.
	Resource string `json:"resource"`
	Count    uint64 `json:"count"`
	// Refused is how many were answered with 403, and Last what is known of the last one of these.
	Refused uint64   `json:"refused,omitempty"`
	Last    *Refusal `json:"last,omitempty"`
}

// Refusal is a request that was answered with 403 Forbidden.
type Refusal struct {
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	// Permission is what the request needs, in the notation of kubectl auth can-i.
	Permission string `json:"permission"`
	// Verdict says why it was refused, as far as the API server tells when it is asked now.
	Verdict Verdict `json:"verdict"`
}

// Verdict is whether a permission is missing.
type Verdict string

// The verdicts.
const (
	// Missing: the operator does not have the permission.
	Missing Verdict = "missing"
	// Permitted: the operator has the permission. It was granted since, or something else has refused the request, such as a quota,
	// a policy, or a namespace that is being deleted.
	Permitted Verdict = "permitted"
	// Unknown: the API server has not answered.
	Unknown Verdict = "unknown"
)
