package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Form is what an object of the new kind stands for.
type Form string

const (
	// External is a resource outside the cluster, which a driver manages.
	External Form = "external"
	// Component is a set of Kubernetes objects, which a function or a Helm chart renders.
	Component Form = "component"
	// Loop is whatever a reconciler makes of it: some Kubernetes objects, for a start.
	Loop Form = "loop"
)

// Project is the module of a new operator.
type Project struct {
	// Name is that of the operator and of its folder.
	Name string
	// Kind is the kind of its objects, such as Widget.
	Kind string
	Form Form
	// Chart is the folder of a Helm chart that is copied into the module. It is for the form Component; empty means that a
	// function renders the objects.
	Chart string
	// Group is the API group of the kind. Empty means example.com.
	Group string
	// Module is the path of the module. Empty means example.com/ and the name.
	Module string
	// Version is the version of trimtab that the module requires.
	Version string
	// Replace is the folder of a checkout of trimtab that is used instead of a published version. Empty means none.
	Replace string
}

// Checkout is Replace as it is written in go.mod: in quotes if it has spaces.
func (p Project) Checkout() string {
	if p.Replace == "" {
		return ""
	}
	return modfile.AutoQuote(filepath.ToSlash(p.Replace))
}

// example is the domain that RFC 2606 reserves for examples.
const example = "example.com"

// Complete fills in the defaults.
func (p Project) Complete() Project {
	if p.Group == "" {
		p.Group = example
	}
	if p.Module == "" {
		p.Module = example + "/" + p.Name
	}
	return p
}

// kindName matches kinds: names of types that are exported. Hyphens and underscores are not for the names of kinds.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Check returns what is wrong with a complete project, one sentence for each.
func (p Project) Check() error {
	return errors.Join(p.checkName(), p.checkKind(), p.checkGroup(), p.checkModule(), p.checkChart(), p.checkReplace())
}

func (p Project) checkName() error {
	if validation.IsDNS1035Label(p.Name) != nil {
		return fmt.Errorf("%q cannot name an operator; use lower-case letters, digits and hyphens, such as widgets", p.Name)
	}
	entries, err := os.ReadDir(p.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s exists and is no folder that can be read; choose another name, or remove it", p.Name)
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty; choose another name, or remove the folder", p.Name)
	}
	return nil
}

func (p Project) checkKind() error {
	switch {
	case p.Kind == "":
		return errors.New("the kind is missing; name it in the singular, as in --kind Widget")
	case !kindName.MatchString(p.Kind) || len(p.Kind) > validation.DNS1035LabelMaxLength:
		return fmt.Errorf("--kind %q is no name of a kind; use letters and digits and begin with a capital, as in --kind Widget", p.Kind)
	case strings.HasSuffix(p.Kind, "List"):
		return fmt.Errorf("--kind %s ends in List, as the lists of kinds do; choose another name", p.Kind)
	case p.Kind == "AddToScheme":
		return errors.New("--kind AddToScheme is the name of a function; choose another name")
	}
	return nil
}

func (p Project) checkGroup() error {
	if validation.IsDNS1123Subdomain(p.Group) != nil || !strings.Contains(p.Group, ".") {
		return fmt.Errorf("--group %q is no domain; use one of yours, in lower case, such as widgets.example.com", p.Group)
	}
	for _, kept := range []string{"k8s.io", "kubernetes.io"} {
		if p.Group == kept || strings.HasSuffix(p.Group, "."+kept) {
			return fmt.Errorf("--group %s is kept for Kubernetes itself; use a domain of yours, such as widgets.example.com", p.Group)
		}
	}
	return nil
}

func (p Project) checkModule() error {
	if p.Module == example+"/"+p.Name {
		return nil // whatever is wrong with it is wrong with the name
	}
	if err := module.CheckImportPath(p.Module); err != nil || filepath.IsAbs(p.Module) {
		return fmt.Errorf("--module %q is no path of a module; use the address of its repository, such as github.com/your-name/%s", p.Module, p.Name)
	}
	return nil
}

func (p Project) checkChart() error {
	if p.Chart == "" {
		return nil
	}
	if p.Form != Component {
		return errors.New("--chart is for components; use it with --component")
	}
	if info, err := os.Stat(filepath.Join(p.Chart, "Chart.yaml")); err != nil || info.IsDir() {
		return fmt.Errorf("--chart %s is no Helm chart: it has no file Chart.yaml; name the folder of a chart", p.Chart)
	}
	return nil
}

func (p Project) checkReplace() error {
	if p.Replace == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(p.Replace, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+Trimtab+"\n") {
		return fmt.Errorf("--replace %s is no checkout of trimtab; name the folder that has the go.mod of %s", p.Replace, Trimtab)
	}
	return nil
}

// role matches the line of a template that begins a role.
var role = regexp.MustCompile(`(?m)^kind: (Cluster)?Role$`)

// Grants reports whether the chart, or one in it, has roles.
func (p Project) Grants() (bool, error) {
	found := false
	err := filepath.WalkDir(p.Chart, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".tpl"}, filepath.Ext(name)) {
			return err
		}
		text, err := os.ReadFile(name)
		found = found || role.Match(text)
		return err
	})
	return found, err
}
