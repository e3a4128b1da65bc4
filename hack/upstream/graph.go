// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "k8s.io/kubernetes/"

// A name is a declaration at the top level of a package of k8s.io/kubernetes, such as
// pkg/api/pod.DropDisabledPodFields, or, for a method, pkg/api/pod.Type.Method.
type name struct{ pkg, name string }

func (n name) String() string { return n.pkg + "." + n.name }

// entryPoints is what kube-apiserver calls for Pods. A type stands for its methods.
var entryPoints = []name{
	{"pkg/apis/core/v1", "SetObjectDefaults_Pod"},
	{"pkg/apis/core/v1", "Convert_v1_Pod_To_core_Pod"},
	{"pkg/apis/core/v1", "Convert_v1_PodSpec_To_core_PodSpec"},
	{"pkg/apis/core/v1", "Convert_v1_PodStatus_To_core_PodStatus"},
	{"pkg/apis/core/v1", "Convert_core_Pod_To_v1_Pod"},
	{"pkg/apis/core/v1", "Convert_core_PodSpec_To_v1_PodSpec"},
	{"pkg/apis/core/v1", "Convert_core_PodStatus_To_v1_PodStatus"},
	{"pkg/registry/core/pod", "podStrategy"},
	{"pkg/registry/core/pod", "podStatusStrategy"},
	{"pkg/registry/core/pod", "podResizeStrategy"},
	{"pkg/registry/core/pod", "podEphemeralContainersStrategy"},
	{"pkg/registry/core/pod", "MatchPod"},
	{"pkg/registry/core/pod", "Indexers"},
	{"pkg/registry/core/pod", "NodeNameTriggerFunc"},
	{"pkg/registry/core/pod/storage", "BindingREST"},
	{"pkg/printers/internalversion", "printPod"},
	{"pkg/printers/internalversion", "podColumnDefinitions"},
}

// unfollowed are packages whose declarations are not recorded: types, which fields.go
// compares, gates, which gates.go does, and what only registers them. Nor are generated
// conversions: they follow from the fields.
var unfollowed = map[string]bool{
	"pkg/apis/core":        true,
	"pkg/api/legacyscheme": true,
	"pkg/features":         true,
}

const kubeFeatures, genericFeatures = "k8s.io/kubernetes/pkg/features", "k8s.io/apiserver/pkg/features"

// graph is the declarations of a release and what each refers to. It is built without
// types: a method call is not followed to the method, so that all methods of a type
// count as soon as the type does.
type graph struct {
	dir      string
	fset     *token.FileSet
	packages map[string]map[string]*declaration
}

// declaration is a declaration with what it refers to.
type declaration struct {
	hash  string
	refs  []name
	gates []string
}

func newGraph(dir string) *graph {
	return &graph{dir: dir, fset: token.NewFileSet(), packages: map[string]map[string]*declaration{}}
}

// reach returns the hash of each declaration that can be reached, and the gates that
// they read. A gate is true if it decides what fields are dropped.
func (g *graph) reach(from []name) (declarations map[string]entry, gates map[string]bool, err error) {
	declarations, gates = map[string]entry{}, map[string]bool{}
	seen := map[name]bool{}
	queue := slices.Clone(from)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if seen[n] || unfollowed[n.pkg] || strings.HasPrefix(n.name, "autoConvert_") {
			continue
		}
		seen[n] = true
		decls, err := g.load(n.pkg)
		if err != nil {
			return nil, nil, err
		}
		d := decls[n.name]
		if d == nil {
			continue // gone, which the comparison says, or a name of another platform
		}
		declarations[n.String()] = entry{hash: d.hash}
		queue = append(queue, d.refs...)
		for method := range decls {
			if strings.HasPrefix(method, n.name+".") {
				queue = append(queue, name{n.pkg, method})
			}
		}
		for _, gate := range d.gates {
			gates[gate] = gates[gate] || n.pkg == "pkg/api/pod" && strings.HasPrefix(n.name, "drop")
		}
	}
	return declarations, gates, nil
}

// load parses a package.
func (g *graph) load(pkg string) (map[string]*declaration, error) {
	if decls, loaded := g.packages[pkg]; loaded {
		return decls, nil
	}
	files, err := parseDir(g.fset, filepath.Join(g.dir, filepath.FromSlash(pkg)))
	if err != nil {
		return nil, err
	}
	decls := map[string]*declaration{}
	add := func(file sourceFile, declared string, node ast.Node) {
		if declared == "_" {
			return
		}
		r := referrer{pkg: pkg, file: file, own: declared, packages: map[string]bool{}}
		ast.Walk(&r, node)
		decls[declared] = &declaration{hash: file.hash(g.fset, node), refs: r.refs, gates: r.gates}
	}
	for _, file := range files {
		for _, decl := range file.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				add(file, funcName(decl), decl)
				addColumns(decl, func(declared string, node ast.Node) { add(file, declared, node) })
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add(file, spec.Name.Name, spec)
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							add(file, n.Name, spec)
						}
					}
				}
			}
		}
	}
	// Names without a declaration are builtins, fields and the like.
	for _, d := range decls {
		kept := d.refs[:0]
		for _, ref := range d.refs {
			if ref.pkg != pkg || decls[ref.name] != nil {
				kept = append(kept, ref)
			}
		}
		d.refs = kept
	}
	g.packages[pkg] = decls
	return decls, nil
}

func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}

// addColumns adds the columns of tables, which are variables of a function that
// concerns all kinds.
func addColumns(decl *ast.FuncDecl, add func(string, ast.Node)) {
	if decl.Name.Name != "AddHandlers" {
		return
	}
	for _, statement := range decl.Body.List {
		if assign, ok := statement.(*ast.AssignStmt); ok {
			if variable, ok := assign.Lhs[0].(*ast.Ident); ok && assign.Tok == token.DEFINE {
				add(variable.Name, assign)
			}
		}
	}
}

// referrer collects what a declaration refers to.
type referrer struct {
	pkg, own string
	file     sourceFile
	refs     []name
	gates    []string
	packages map[string]bool
}

// Visit implements ast.Visitor.
func (r *referrer) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.SelectorExpr:
		x, ok := node.X.(*ast.Ident)
		if !ok || r.isLocal(x) {
			ast.Walk(r, node.X)
			return nil
		}
		imported, ok := r.file.imports[x.Name]
		switch {
		case !ok:
			ast.Walk(r, node.X)
		case imported == kubeFeatures || imported == genericFeatures:
			r.gates = append(r.gates, node.Sel.Name)
		case strings.HasPrefix(imported, module):
			r.refs = append(r.refs, name{strings.TrimPrefix(imported, module), node.Sel.Name})
		}
		return nil
	case *ast.Ident:
		if node.Name != r.own && !r.isLocal(node) {
			r.refs = append(r.refs, name{r.pkg, node.Name})
		}
	}
	return r
}

// isLocal reports whether the identifier is a parameter or variable of the
// declaration. It relies on the parser's resolution within a file.
func (r *referrer) isLocal(ident *ast.Ident) bool {
	return ident.Obj != nil && r.file.syntax.Scope.Lookup(ident.Name) != ident.Obj
}

// sourceFile is a parsed file.
type sourceFile struct {
	syntax  *ast.File
	source  []byte
	imports map[string]string
}

// parseDir parses the Go files of a directory, as on Linux, without its tests.
func parseDir(fset *token.FileSet, dir string) ([]sourceFile, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	platform := build.Default
	platform.GOOS, platform.GOARCH = "linux", "amd64"
	var files []sourceFile
	for _, file := range names {
		if match, err := platform.MatchFile(dir, filepath.Base(file)); err != nil || !match || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parseFile(fset, file)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func parseFile(fset *token.FileSet, file string) (sourceFile, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return sourceFile{}, err
	}
	syntax, err := parser.ParseFile(fset, file, source, 0)
	if err != nil {
		return sourceFile{}, fmt.Errorf("parse: %w", err)
	}
	f := sourceFile{syntax: syntax, source: source, imports: map[string]string{}}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return sourceFile{}, fmt.Errorf("import of %s: %w", file, err)
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.imports[name] = imported
	}
	return f, nil
}
