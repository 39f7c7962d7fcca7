package dev

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/install"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/kindgen"
	"github.com/trimtab-dev/trimtab/internal/manifest"
)

// build is an operator that has been built, with what its manifests say.
type build struct {
	binary string
	sum    [sha256.Size]byte

	manifests   []*unstructured.Unstructured
	definitions []*apiextensionsv1.CustomResourceDefinition
	// namespace and serviceAccount are those of the Deployment.
	namespace, serviceAccount string
}

// installed returns the manifests that are applied: the operator runs on this machine, not in a Deployment.
func (b *build) installed() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(b.manifests), func(u *unstructured.Unstructured) bool {
		return u.GetKind() == "Deployment" || u.GetKind() == "Service"
	})
}

// build generates what belongs to the kinds, builds the operator and has it print its manifests.
func (s *session) build(ctx context.Context, st *steps.Step) (*build, error) {
	if err := s.generate(ctx, st); err != nil {
		return nil, err
	}
	s.builds++
	b := &build{binary: filepath.Join(s.options.Folder, fmt.Sprintf("operator-%d", s.builds))}
	// Without information for debuggers, the linker is much faster.
	if _, err := s.command(ctx, "go", "build", "-ldflags=-w", "-o", b.binary, s.options.Package); err != nil {
		return nil, err
	}
	if err := b.read(); err != nil {
		return nil, err
	}
	args := []string{"manifests"}
	if len(s.options.Args) > 0 {
		args = append(append(args, "--"), s.options.Args...)
	}
	text, err := s.command(ctx, b.binary, args...)
	if err != nil {
		return nil, errors.Join(err, os.Remove(b.binary))
	}
	return b, b.parse(text)
}

// generate writes what `trimtab gen` writes.
func (s *session) generate(ctx context.Context, st *steps.Step) error {
	want, err := kindgen.Module(ctx, s.options.Root, nil)
	if err != nil {
		return err
	}
	stale, err := kindgen.Stale(s.options.Root, want)
	if err != nil {
		return err
	}
	if err := kindgen.Write(s.options.Root, want, stale); err != nil {
		return err
	}
	for _, path := range stale {
		st.Detail("%s", path)
		if want[path] == nil {
			delete(s.files, path)
			continue
		}
		s.files[path] = sha256.Sum256(want[path])
	}
	return nil
}

// interruptedWithin is how long a command may take to end when the session ends.
const interruptedWithin = 5 * time.Second

// command runs a command in the module and returns its output. What it complains about becomes the error.
func (s *session) command(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.options.Root
	controlplane.OwnGroup(cmd) // Ctrl-C reaches it through ctx
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptedWithin
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); failed && complaints.Len() > 0 {
		return nil, errors.New(strings.TrimSpace(complaints.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{filepath.Base(program)}, args...), " "), err)
	}
	return out.Bytes(), nil
}

// read computes the sum of the binary.
func (b *build) read() error {
	f, err := os.Open(b.binary)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("go build made no program; name the operator's main package, as in trimtab dev ./cmd/manager")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	h.Sum(b.sum[:0])
	return nil
}

// parse reads the manifests.
func (b *build) parse(text []byte) error {
	if err := manifest.Split(text, func(document []byte) error {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil || len(u.Object) == 0 {
			return err
		}
		b.manifests = append(b.manifests, u)
		return nil
	}); err != nil {
		return fmt.Errorf("read what the operator's command manifests prints: %w", err)
	}
	install.Sort(b.manifests)
	for _, u := range b.manifests {
		switch u.GetKind() {
		case "CustomResourceDefinition":
			d := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
				return fmt.Errorf("read the definition %s: %w", u.GetName(), err)
			}
			b.definitions = append(b.definitions, d)
		case "Deployment":
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
				return fmt.Errorf("read the Deployment %s: %w", u.GetName(), err)
			}
			b.namespace, b.serviceAccount = d.Namespace, d.Spec.Template.Spec.ServiceAccountName
		}
	}
	if b.serviceAccount == "" {
		return errors.New("the program is no operator of trimtab: its command manifests prints no Deployment; " +
			"call operator.Main in its main function")
	}
	return nil
}
