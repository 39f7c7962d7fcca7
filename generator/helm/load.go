package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
	"github.com/trimtab-dev/trimtab/loop"
)

// source is a chart as it was read.
type source struct {
	name   string
	files  []*archive.BufferedFile
	digest string
	// capable: something in the chart may ask for the capabilities of the cluster.
	capable bool
	// asked are the APIs that its templates ask for by name.
	asked []string
	// marked are the templates that call functions which return something else each time, changed, and sites is where.
	marked map[string][]byte
	sites  []site
	// defined are permissions to see whether there are objects of the kinds that crds/ defines.
	defined []loop.Need
}

// asking finds the APIs that templates ask for by name.
var asking = regexp.MustCompile(`APIVersions\.Has\s+"([^"]+)"`)

// open reads a chart and checks it.
func open(fsys fs.FS, name string) (*source, error) {
	read := folder
	if path.Ext(name) == ".tgz" {
		read = packed
	}
	files, err := read(fsys, name)
	if err != nil {
		return nil, err
	}
	s := &source{files: files}
	hash := sha256.New()
	for _, f := range files {
		fmt.Fprintf(hash, "%s %d\n", f.Name, len(f.Data))
		hash.Write(f.Data)
		for _, match := range asking.FindAllSubmatch(f.Data, -1) {
			s.asked = append(s.asked, string(match[1]))
		}
	}
	s.digest = hex.EncodeToString(hash.Sum(nil)[:16])
	return s, s.check()
}

// packed reads a packed chart.
func packed(fsys fs.FS, name string) ([]*archive.BufferedFile, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return archive.LoadArchiveFiles(f)
}

// folder reads a folder, as Helm does.
func folder(fsys fs.FS, name string) ([]*archive.BufferedFile, error) {
	root, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, err
	}
	rules := ignore.Empty()
	if text, err := fs.ReadFile(root, ignore.HelmIgnore); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case rules.Ignore(name, info) && d.IsDir():
			return fs.SkipDir
		case rules.Ignore(name, info), d.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		}
		data, err := fs.ReadFile(root, name)
		files = append(files, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))})
		return err
	})
	return files, err
}

// load returns a new copy of the chart: rendering changes it.
func (s *source) load() (*chart.Chart, error) {
	c, err := loader.LoadFiles(s.files)
	if err != nil {
		return nil, rendering.OneLine(err)
	}
	if len(s.marked) > 0 {
		s.replace(c)
	}
	return c, nil
}

// effective returns the chart as it is in its files, and all values that it has with these.
func (s *source) effective(values map[string]any) (*chart.Chart, map[string]any, error) {
	c, err := loader.LoadFiles(s.files)
	if err != nil {
		return nil, nil, rendering.OneLine(err)
	}
	if values, err = plain(values); err != nil {
		return nil, nil, err
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, nil, err
	}
	all, err := util.CoalesceValues(c, values)
	if err != nil {
		return nil, nil, err
	}
	if c.Values, err = plain(c.Values); err != nil {
		return nil, nil, err
	}
	all, err = plain(all)
	return c, all, err
}

// replace puts the changed templates into a chart.
func (s *source) replace(c *chart.Chart) {
	for _, t := range c.Templates {
		if text, ok := s.marked[path.Join(c.ChartFullPath(), t.Name)]; ok {
			t.Data = text
		}
	}
	for _, sub := range c.Dependencies() {
		s.replace(sub)
	}
}

// check refuses what cannot be rendered with any values.
func (s *source) check() error {
	c, err := s.load()
	switch {
	case err != nil:
		return err
	case c.Metadata.Type == "library":
		return errors.New("it is a library chart, which renders nothing; use it as a sub-chart")
	case c.Metadata.APIVersion != chart.APIVersionV1 && c.Metadata.APIVersion != chart.APIVersionV2:
		return fmt.Errorf("its apiVersion is %q, which must be v1 or v2", c.Metadata.APIVersion)
	}
	s.name = c.Name()
	s.capable = c.Metadata.KubeVersion != "" || mentions(c)
	if err := complete(c); err != nil {
		return err
	}
	for _, crd := range c.CRDObjects() {
		s.define(crd.File.Data)
	}
	// Templates are parsed before any of them is executed. What the default values lack does not matter here.
	values, err := util.ToRenderValuesWithSchemaValidation(c, nil, common.ReleaseOptions{}, nil, true)
	if err != nil {
		return err
	}
	_, err = engine.Engine{}.RenderWithContext(context.Background(), c, values) //nolint:forbidigo // it looks nothing up
	if err != nil && strings.HasPrefix(err.Error(), "parse error") {
		return rendering.OneLine(err)
	}
	if c, err = s.load(); err == nil { // not the one that was rendered
		s.mark(c)
	}
	return err
}

// define notes the kinds that a file in crds/ defines. What is wrong with it is reported when it is rendered.
func (s *source) define(text []byte) {
	for _, document := range releaseutil.SplitManifests(string(text)) {
		d := apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(document), &d); err != nil || d.Kind != "CustomResourceDefinition" || len(d.Spec.Versions) == 0 {
			continue
		}
		s.defined = append(s.defined, loop.Need{
			GroupVersionKind: schema.GroupVersionKind{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Kind: d.Spec.Names.Kind},
			Resource:         d.Spec.Names.Plural, Verbs: []string{"list", "watch"}, ClusterWide: true, Later: true,
		})
	}
}

// complete refuses a chart that lacks a sub-chart, or whose schema is none.
func complete(c *chart.Chart) error {
	if text := c.Schema; text != nil {
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			return fmt.Errorf("%s/values.schema.json: it is no JSON: %w", c.ChartFullPath(), err)
		}
	}
	have := map[string]bool{}
	for _, sub := range c.Dependencies() {
		have[sub.Name()] = true
		if err := complete(sub); err != nil {
			return err
		}
	}
	for _, d := range c.Metadata.Dependencies {
		if d != nil && !have[d.Name] {
			return fmt.Errorf("%s/Chart.yaml names the sub-chart %s, which is not in charts/; run helm dependency build", c.ChartFullPath(), d.Name)
		}
	}
	return nil
}

// capabilities is the word without which no template asks for them.
const capabilities = "Capabilities"

// mentions reports whether the word is in a template or the values of a chart, or of one of its sub-charts.
func mentions(c *chart.Chart) bool {
	has := func(f *common.File) bool { return bytes.Contains(f.Data, []byte(capabilities)) }
	return slices.ContainsFunc(c.Templates, has) || slices.ContainsFunc(c.Files, has) || mentionsIn(c.Values) ||
		slices.ContainsFunc(c.Dependencies(), mentions)
}

// mentionsIn reports whether the word is in values, which may be templates.
func mentionsIn(values map[string]any) bool {
	text, err := json.Marshal(values)
	return err != nil || bytes.Contains(text, []byte(capabilities))
}

// plain returns values as Helm has them: as they are read from JSON, in which all numbers are float64.
func plain(values map[string]any) (map[string]any, error) {
	if values == nil {
		return map[string]any{}, nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode values: %w", err)
	}
	out := map[string]any{}
	return out, json.Unmarshal(text, &out)
}

func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // what is encoded here was decoded from JSON before
		text = []byte(err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
