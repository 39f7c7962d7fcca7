package component

import (
	"encoding/json"
	"fmt"

	"github.com/trimtab-dev/trimtab/api"
)

// revise notes which revision of the component this is. The status has it before anything is done that follows from it,
// or the next pass comes to the same.
func (p *pass[T]) revise() error {
	digest, err := p.revisionDigest()
	if err != nil {
		return err
	}
	status := p.obj.GetStatus()
	status.Revision, status.RevisionDigest = revise(status, digest), digest
	p.context.revision, p.context.digest = status.Revision, digest
	return nil
}

// revisionDigest identifies what the component is rendered from.
func (p *pass[T]) revisionDigest() (string, error) {
	spec := specOf(p.obj)
	if u, ok := spec.(Unstructurable); ok {
		spec = u.ToUnstructured()
	}
	in := []any{spec, p.refs.digest, p.version()}
	if p.obj.GetAnnotations()[p.options.Name+"/"+api.SuffixHelmRelease] != "" { // without it, what was taken over is upgraded
		in = append(in, api.SuffixHelmRelease)
	}
	text, err := json.Marshal(in)
	if err != nil {
		in[0] = p.obj.GetGeneration() // the parameters are not what JSON knows, which is the generator's business
		text, err = json.Marshal(in)
	}
	if err != nil {
		return "", fmt.Errorf("encode what the component is rendered from: %w", err)
	}
	return hashOf(text), nil
}

// version is that of the renderer, which is asked once; empty if it has none.
func (p *pass[T]) version() string {
	if v, ok := p.renderer.(Versioned); ok && p.rendererVersion == nil {
		p.rendererVersion = new(v.Version())
	}
	if p.rendererVersion == nil {
		return ""
	}
	return *p.rendererVersion
}

// inputs identifies what the renderer's result depends on. Empty means that this is not known.
func (p *pass[T]) inputs() (_ string, err error) {
	in := struct {
		Revision            int64
		Generation          int64
		Labels, Annotations map[string]string
		Namespace, Name     string
		References, Version string
		Target              string
		Policies, Spec      any
		Observed            []any
	}{
		Revision: p.obj.GetStatus().Revision, Version: p.version(),
		Generation: p.obj.GetGeneration(), Labels: p.obj.GetLabels(), Annotations: p.obj.GetAnnotations(),
		Namespace: p.config.Namespace, Name: p.config.Name, References: p.refs.digest, Policies: p.config.Policies,
		Target: p.place.digest,
	}
	if in.Observed, err = p.allObserved(); err != nil {
		return "", err
	}
	switch o := any(p.obj).(type) {
	case interface{ GetSpec() Unstructurable }: // may be anything
		in.Spec = o.GetSpec().ToUnstructured()
	default:
		if p.hooks.any(postRead, preReconcile) {
			in.Spec = specOf(p.obj)
		}
	}
	text, err := json.Marshal(in)
	if err != nil {
		return "", nil //nolint:nilerr // the parameters are not what JSON knows, which is the generator's business
	}
	return hashOf(text), nil
}
