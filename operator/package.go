package operator

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/internal/packaging"
)

// packageCmd writes the files that install the operator.
func packageCmd(o Options) *cobra.Command {
	var p packaged
	cmd := &cobra.Command{
		Use:   "package DIR [-- MANAGER-FLAG...]",
		Short: "Write the files that install the operator: for kubectl, kustomize, Helm and OLM",
		Long: "Write the files that install the operator into a folder: install.yaml for kubectl, a base for kustomize, a Helm\n" +
			"chart, a bundle for the Operator Lifecycle Manager, and dashboard and alerts. They are derived from the\n" +
			"controllers; no cluster is needed. Arguments after -- are flags that the operator is run with. trimtab package\n" +
			"builds the image as well.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, p.manifests.Args = args[:n], args[n:]
			}
			if len(args) != 1 {
				return fmt.Errorf("%d folders are named; name the one to write to, as in %s dist", len(args), cmd.CommandPath())
			}
			m, err := p.model(o, func(warning string) {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", o.Name, warning) // there is nowhere to report it
			})
			if err != nil {
				return err
			}
			files, err := m.Files()
			if err != nil {
				return err
			}
			return writeFiles(cmd.OutOrStdout(), args[0], files)
		},
	}
	p.manifests.flags(cmd, o.Name)
	cmd.Flags().StringVar(&p.version, "version", "", "version of the chart and of the bundle (default: the tag of the image)")
	return cmd
}

// packaged says what a package contains.
type packaged struct {
	manifests ManifestOptions
	version   string
}

// model returns what the files are made from.
func (p packaged) model(o Options, warn func(string)) (packaging.Model, error) {
	m := p.manifests
	i, err := o.installation(&m, partAll, warn)
	if err != nil {
		return packaging.Model{}, err
	}
	out := packaging.Model{
		Name: o.Name, Installation: i.design.terms.Installation, Image: m.Image, Namespace: m.Namespace,
		Version: p.version, Flags: m.Args, Uninstall: uninstallCommand,
	}
	if out.Version == "" {
		out.Version = versionOf(m.Image)
	}
	if out.Objects, err = i.objects(m); err != nil {
		return out, err
	}
	if out.Kinds, err = i.design.held(); err != nil {
		return out, err
	}
	if err := i.design.monitoring(&out); err != nil {
		return out, err
	}
	quiet := func(string) {} // it has been said
	chart := p.manifests
	chart.Namespace = packaging.ReleaseNamespace
	if out.Chart, err = o.charted(chart, quiet); err != nil {
		return out, err
	}
	if len(i.settings.watchNamespaces) > 0 || i.design.anyClusterScoped() {
		return out, nil
	}
	chart.Args = append(slices.Clone(chart.Args), "--watch-namespaces="+packaging.EachNamespace)
	restricted, err := o.charted(chart, quiet)
	out.Restricted = &restricted
	return out, err
}

// charted returns the objects of a chart.
func (o Options) charted(m ManifestOptions, warn func(string)) (packaging.Objects, error) {
	i, err := o.installation(&m, partAll, warn)
	if err != nil {
		return packaging.Objects{}, err
	}
	return i.objects(m)
}

// monitoring adds dashboard and alerts.
func (d *design) monitoring(m *packaging.Model) error {
	scope, err := d.scope()
	if err != nil {
		return err
	}
	m.Alerts, m.AlertGroups = scope.Alerts(), scope.Groups()
	m.Dashboard, err = scope.Dashboard()
	return err
}

// anyClusterScoped reports whether the operator cannot be restricted to namespaces.
func (d *design) anyClusterScoped() bool {
	for _, kind := range d.kinds {
		if d.resources.clusterScoped(kind.GroupKind()) {
			return true
		}
	}
	return false
}

// notInVersions are the characters of a tag that are not allowed in a semantic version.
var notInVersions = regexp.MustCompile(`[^0-9A-Za-z-]+`)

// versionOf returns a semantic version for an image: its tag, if that is one, or else a preliminary version that contains it.
func versionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	tag := "latest"
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		tag = name[i+1:]
	}
	if v := strings.TrimPrefix(tag, "v"); packaging.IsVersion(v) {
		return v
	}
	return "0.0.0-" + strings.Trim(notInVersions.ReplaceAllString(tag, "-"), "-")
}

// writeFiles writes files into a folder, which others may be in, and prints their names.
func writeFiles(out io.Writer, folder string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // manifests are for everybody
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // as above
			return err
		}
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}
