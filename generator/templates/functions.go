package templates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/gobwas/glob"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// pure are the functions of sprig that return the same for the same arguments and read nothing else.
func pure() []string {
	return strings.Fields(`
		abbrev abbrevboth trunc trim upper lower title untitle substr repeat trimall trimAll trimSuffix trimPrefix nospace initials
		swapcase snakecase camelcase kebabcase wrap wrapWith contains hasPrefix hasSuffix quote squote cat indent nindent replace
		plural sha1sum sha256sum sha512sum adler32sum toString atoi int64 int float64 seq toDecimal split splitList splitn toStrings
		until untilStep add1 add sub div mod mul add1f addf subf divf mulf biggest max min maxf minf ceil floor round join sortAlpha
		default empty coalesce all any compact mustCompact toJson toPrettyJson toRawJson mustToJson
		mustToPrettyJson mustToRawJson ternary deepCopy mustDeepCopy typeOf typeIs typeIsLike kindOf kindIs deepEqual base dir clean
		ext isAbs b64enc b64dec b32enc b32dec tuple list dict get set unset hasKey pluck pick omit merge mergeOverwrite mustMerge
		mustMergeOverwrite append push mustAppend mustPush prepend mustPrepend first mustFirst rest mustRest last mustLast initial
		mustInitial reverse mustReverse uniq mustUniq without mustWithout has mustHas slice mustSlice concat dig chunk mustChunk
		derivePassword decryptAES semver semverCompare fail regexMatch mustRegexMatch regexFindAll mustRegexFindAll regexFind
		mustRegexFind regexReplaceAll mustRegexReplaceAll regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit
		mustRegexSplit regexQuoteMeta urlParse urlJoin duration`)
}

// deepest is how many templates may include each other. It is Helm's limit.
const deepest = 1000

// execution is one rendering of the templates.
type execution struct {
	ctx     context.Context //nolint:containedctx // functions of templates take none
	request Request
	set     *template.Template
	depth   int
}

// execution begins a rendering.
func (g *Generator) execution(ctx context.Context, r Request) (*execution, error) {
	set, err := g.parsed.Clone()
	if err != nil {
		return nil, err
	}
	e := &execution{ctx: ctx, request: r, set: set}
	set.Funcs(g.functions(e))
	return e, nil
}

// functions returns the functions of templates. Those of no execution are only for the parser.
func (g *Generator) functions(e *execution) template.FuncMap {
	all := sprig.TxtFuncMap()
	out := template.FuncMap{
		"keys": rendering.SortedKeys, "values": rendering.SortedValues,
		"required": required, "toYaml": toYAML, "mustToYaml": toYAML,
		"fromYaml": fromYAML[any], "mustFromYaml": fromYAML[any], "fromJson": fromYAML[any], "mustFromJson": fromYAML[any],
		"fromYamlArray": fromYAML[[]any], "mustFromYamlArray": fromYAML[[]any],
		"fromJsonArray": fromYAML[[]any], "mustFromJsonArray": fromYAML[[]any],
		"readFile": g.readFile, "existsFile": g.existsFile, "listFiles": g.listFiles,
		"include": e.include, "tpl": e.tpl,
		"namespace":         func() string { return e.request.Namespace },
		"name":              func() string { return e.request.Name },
		"component":         func() (client.Object, error) { return component.ComponentFromContext(e.ctx) },
		"componentRevision": e.revision, "componentDigest": e.digest,
		"lookup": e.lookup, "mustLookup": e.mustLookup, "lookupList": e.lookupList,
		"kubernetesVersion": e.version, "apiVersions": e.apis,
	}
	for _, name := range pure() {
		out[name] = all[name]
	}
	for name, f := range map[string]any{"quote": all["quote"], "squote": all["squote"], "cat": all["cat"], "print": fmt.Sprint, "println": fmt.Sprintln} {
		if f, ok := f.(func(...any) string); ok {
			out[name] = func(args ...any) string { return f(pointed(args)...) }
		}
	}
	out["toString"] = func(v any) string { return fmt.Sprint(pointed([]any{v})...) }
	maps.Copy(out, g.options.Functions)
	return out
}

// unknown finds the name of a function that does not exist.
var unknown = regexp.MustCompile(`function "(\w+)" not defined$`)

// unparsed returns an error of the parser, with the reason why a function of sprig does not exist.
func unparsed(err error) error {
	err = rendering.OneLine(err)
	if m := unknown.FindStringSubmatch(err.Error()); m != nil && sprig.TxtFuncMap()[m[1]] != nil {
		return fmt.Errorf("%w: this function of sprig is left out; see the documentation of the package", err)
	}
	return err
}

// include executes a template by its name.
func (e *execution) include(name string, data any) (string, error) {
	return e.run(e.set, name, data)
}

// tpl executes a text, which may define templates for itself.
func (e *execution) tpl(text string, data any) (string, error) {
	set, err := e.set.Clone()
	if err != nil {
		return "", err
	}
	if _, err := set.New("tpl").Parse(text); err != nil {
		return "", err
	}
	before := e.set
	e.set = set
	defer func() { e.set = before }()
	return e.run(set, "tpl", data)
}

func (e *execution) run(set *template.Template, name string, data any) (string, error) {
	if err := e.ctx.Err(); err != nil {
		return "", err
	}
	if e.depth++; e.depth > deepest {
		return "", fmt.Errorf("%d templates include each other; does one include itself?", deepest)
	}
	defer func() { e.depth-- }()
	var out strings.Builder
	if err := set.ExecuteTemplate(&out, name, data); err != nil {
		return "", err
	}
	return out.String(), complete(name, out.String())
}

var errOutside = errors.New("there is no component")

// inside reports whether there is a component, whose cluster can be asked.
func (e *execution) inside() bool {
	_, err := component.ReconcilerNameFromContext(e.ctx)
	return err == nil
}

func (e *execution) revision() (int64, error) {
	if !e.inside() {
		return 1, nil
	}
	return component.ComponentRevisionFromContext(e.ctx)
}

func (e *execution) digest() (string, error) {
	if !e.inside() {
		return "", nil
	}
	return component.ComponentDigestFromContext(e.ctx)
}

func (e *execution) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if !e.inside() {
		return map[string]any{}, nil
	}
	return rendering.Lookup(e.ctx)(apiVersion, kind, namespace, name)
}

func (e *execution) mustLookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	found, err := e.lookup(apiVersion, kind, namespace, name)
	if err == nil && len(found) == 0 {
		group := schema.FromAPIVersionAndKind(apiVersion, kind).Group
		err = apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind}, name)
	}
	return found, err
}

// lookupList returns all objects of a kind in a namespace, or those with labels that a selector selects.
func (e *execution) lookupList(apiVersion, kind, namespace string, selector ...string) ([]any, error) {
	selected, err := labels.Parse(strings.Join(selector, ","))
	if err != nil {
		return nil, err
	}
	found, err := e.lookup(apiVersion, kind, namespace, "")
	items, _ := found["items"].([]any)
	return slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		content, _ := item.(map[string]any)
		return !selected.Matches(labels.Set((&unstructured.Unstructured{Object: content}).GetLabels()))
	}), err
}

func (e *execution) capabilities() (component.Capabilities, error) {
	if !e.inside() {
		return component.Capabilities{}, errOutside
	}
	return component.CapabilitiesFromContext(e.ctx)
}

func (e *execution) version() (*version.Info, error) {
	c, err := e.capabilities()
	if err != nil {
		return nil, err
	}
	v, err := utilversion.ParseSemantic(c.Version)
	if err != nil {
		return nil, fmt.Errorf("the version of the cluster is %q: %w", c.Version, err)
	}
	return &version.Info{Major: fmt.Sprint(v.Major()), Minor: fmt.Sprint(v.Minor()), GitVersion: c.Version}, nil
}

func (e *execution) apis() ([]string, error) {
	c, err := e.capabilities()
	return c.APIs, err
}

// readFile returns a file of the folder as it is there.
func (g *Generator) readFile(name string) (string, error) {
	text, ok := g.files[path.Clean(name)]
	if !ok {
		return "", fmt.Errorf("there is no file %s in the folder", name)
	}
	return text, nil
}

func (g *Generator) existsFile(name string) bool {
	_, ok := g.files[path.Clean(name)]
	return ok
}

// listFiles returns the files whose paths match a pattern, such as "parts/**.{yaml,json}", in order.
func (g *Generator) listFiles(pattern string) ([]string, error) {
	matcher, err := glob.Compile(pattern, '/')
	if err != nil {
		return nil, fmt.Errorf("%q: %w", pattern, err)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.files)), func(name string) bool { return !matcher.Match(name) }), nil
}

// pointed returns what pointers point to: texts have no addresses.
func pointed(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		out[i] = arg
		if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer {
			if _, prints := arg.(fmt.Stringer); prints && !v.IsNil() {
				continue
			}
			out[i] = nil
			if !v.IsNil() {
				out[i] = v.Elem().Interface()
			}
		}
	}
	return out
}

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

// fromYAML decodes YAML, in which integers stay integers. What is in it is not in its errors.
func fromYAML[T any](text string) (T, error) {
	var out T
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return out, rendering.OneLine(err)
	}
	return out, json.Unmarshal(data, &out)
}
