// Dumps, as JSON on standard output, the validation that Kubernetes generates from the `+k8s:` tags of its API types
// (zz_generated.validations.go). Run by tools/generate_validations.py, which describes the form.
//
//	go run main.go <folder of k8s.io/kubernetes> <of k8s.io/api> <of k8s.io/apimachinery> <group/version>...
//
// The generated file is read instead of the tags: it is what the server runs, with the order of the checks, their
// stages (alpha, beta) and the early returns, none of which the tags say by themselves.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const generated = "zz_generated.validations.go"

type list = []any

var kubernetes, api, apimachinery string

// An apiPackage is a package of API types: JSON names of fields, what named types are, values of constants.
type apiPackage struct {
	fields    map[string]map[string]string
	named     map[string]ast.Expr
	constants map[string]string
}

var packages = map[string]*apiPackage{}

func main() {
	kubernetes, api, apimachinery = os.Args[1], os.Args[2], os.Args[3]
	types := map[string]list{}
	wanted := os.Args[4:]
	for done := map[string]bool{}; len(wanted) > 0; wanted = wanted[1:] {
		if label := wanted[0]; !done[label] {
			done[label] = true
			wanted = append(wanted, readFile(label, types)...)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(types); err != nil {
		panic(err)
	}
}

func fileOf(label string) string {
	if label == "meta/v1" {
		return filepath.Join(apimachinery, "pkg/apis/meta/v1/validation", generated)
	}
	return filepath.Join(kubernetes, "pkg/apis", label, generated)
}

func labelOf(path string) string {
	path = strings.TrimSuffix(path, "/validation")
	parts := strings.Split(path, "/")
	return strings.Join(parts[len(parts)-2:], "/")
}

func folderOf(path string) string {
	if rest, found := strings.CutPrefix(path, "k8s.io/apimachinery/"); found {
		return filepath.Join(apimachinery, rest)
	}
	return filepath.Join(api, strings.TrimPrefix(path, "k8s.io/api/"))
}

// A reader turns the functions of one generated file into data.
type reader struct {
	label   string
	imports map[string]string
	sets    map[string]*ast.CallExpr
	needs   []string
}

// readFile reads one generated file, and answers which others it refers to.
func readFile(label string, types map[string]list) []string {
	file, err := parser.ParseFile(token.NewFileSet(), fileOf(label), nil, 0)
	if err != nil {
		panic(err)
	}
	r := &reader{label: label, imports: map[string]string{}, sets: map[string]*ast.CallExpr{}}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := filepath.Base(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		r.imports[name] = path
	}
	for _, declaration := range file.Decls {
		if variables, ok := declaration.(*ast.GenDecl); ok && variables.Tok == token.VAR {
			spec := variables.Specs[0].(*ast.ValueSpec)
			r.sets[spec.Names[0].Name], _ = spec.Values[0].(*ast.CallExpr)
		}
	}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			if name, found := strings.CutPrefix(function.Name.Name, "Validate_"); found {
				types[label+"."+name] = r.statements(function.Body.List)
			}
		}
	}
	return r.needs
}

// statements are checks, in their order: of a type, of a field, or of a function that is an argument.
func (r *reader) statements(body []ast.Stmt) list {
	found := list{}
	for _, statement := range body {
		switch s := statement.(type) {
		case *ast.BlockStmt:
			found = append(found, r.field(s))
		case *ast.IfStmt:
			if assigned, ok := s.Init.(*ast.AssignStmt); ok {
				found = append(found, r.check(assigned.Rhs[0]))
			}
		case *ast.AssignStmt: // errs = append(errs, Validate_T(…)...)
			if call, ok := s.Rhs[0].(*ast.CallExpr); ok && len(call.Args) == 2 {
				found = append(found, r.check(call.Args[1]))
			}
		case *ast.ExprStmt: // func() { … }(): checks with early returns of their own
			call := s.X.(*ast.CallExpr).Fun.(*ast.FuncLit)
			found = append(found, list{"all", r.statements(call.Body.List)})
		case *ast.ReturnStmt:
			if len(s.Results) == 1 {
				if _, ok := s.Results[0].(*ast.CallExpr); ok {
					found = append(found, r.check(s.Results[0]))
				}
			}
		}
	}
	return found
}

// field is ["field", JSON name ("" when embedded), zero value (null for pointers, lists and maps), checks].
func (r *reader) field(block *ast.BlockStmt) list {
	function := block.List[0].(*ast.AssignStmt).Rhs[0].(*ast.FuncLit)
	call := block.List[2].(*ast.AssignStmt).Rhs[0].(*ast.CallExpr).Args[1].(*ast.CallExpr)
	name, place := "", call.Args[0].(*ast.CallExpr)
	if selector, ok := place.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Child" {
		name = r.argument(place.Args[0]).(string)
	}
	var zero any
	if _, byValue := call.Args[1].(*ast.UnaryExpr); byValue {
		zero = r.zero(function.Type.Params.List[1].Type.(*ast.StarExpr).X, r.imports, "")
	}
	return list{"field", name, zero, r.statements(function.Body.List)}
}

// check is [name of the function, arguments…]; "~" before the name: alpha, "!" after it: ends the checks of its field.
func (r *reader) check(expression ast.Expr) list {
	call := expression.(*ast.CallExpr)
	prefix, suffix := "", ""
	for {
		selector, ok := call.Fun.(*ast.SelectorExpr)
		inner, marked := ast.Expr(nil), false
		if ok {
			inner, marked = selector.X, strings.HasPrefix(selector.Sel.Name, "Mark")
		}
		if !marked {
			break
		}
		switch selector.Sel.Name {
		case "MarkAlpha":
			prefix = "~"
		case "MarkShortCircuit":
			suffix = "!"
		}
		call = inner.(*ast.CallExpr)
	}
	named := r.function(call.Fun)
	result := list{prefix + named[0].(string) + suffix}
	result = append(result, named[1:]...)
	for _, argument := range call.Args[5:] {
		result = append(result, r.argument(argument))
	}
	return result
}

// function is a validating function as the beginning of a check.
func (r *reader) function(expression ast.Expr) list {
	name, label := "", r.label
	switch e := expression.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name, label = e.Sel.Name, labelOf(r.imports[e.X.(*ast.Ident).Name])
	default:
		panic(fmt.Sprintf("%T is no function", expression))
	}
	if kind, found := strings.CutPrefix(name, "Validate_"); found {
		r.needs = append(r.needs, label)
		return list{"type", label + "." + kind}
	}
	return list{name}
}

func (r *reader) argument(expression ast.Expr) any {
	switch e := expression.(type) {
	case *ast.BasicLit:
		var value any
		if e.Kind == token.INT {
			value, _ = strconv.Atoi(e.Value)
		} else {
			value, _ = strconv.Unquote(e.Value)
		}
		return value
	case *ast.UnaryExpr:
		return -r.argument(e.X).(int)
	case *ast.Ident:
		switch e.Name {
		case "nil":
			return nil
		case "true", "false":
			return e.Name == "true"
		}
		if call := r.sets[e.Name]; call != nil {
			return r.members(call)
		}
		return r.function(e)
	case *ast.SelectorExpr:
		if path := r.imports[e.X.(*ast.Ident).Name]; strings.HasPrefix(path, "k8s.io/api/") {
			value, known := packageAt(path).constants[e.Sel.Name]
			if !known {
				panic("no value of the constant " + e.Sel.Name)
			}
			return value
		}
		return r.function(e)
	case *ast.FuncLit:
		return r.literal(e)
	case *ast.CompositeLit:
		items := list{}
		for _, item := range e.Elts {
			if pair, ok := item.(*ast.KeyValueExpr); ok {
				item = pair.Value
			}
			items = append(items, r.argument(item))
		}
		return items
	}
	panic(fmt.Sprintf("an argument of an unknown form: %T", expression))
}

// members are the values of an enumeration, or the names of a union's members.
func (r *reader) members(call *ast.CallExpr) list {
	found := list{}
	for _, argument := range call.Args {
		if member, ok := argument.(*ast.CallExpr); ok {
			argument = member.Args[0]
		}
		found = append(found, r.argument(argument))
	}
	return found
}

// literal is a function that is an argument: a comparison of two list items (the JSON names of their keys), a check
// whether a member is set, a getter (the zero value of what it gets), or further checks.
func (r *reader) literal(function *ast.FuncLit) any {
	parameters := function.Type.Params.List
	if len(parameters) > 2 {
		return list{"all", r.statements(function.Body.List)}
	}
	result, isBool := function.Type.Results.List[0].Type.(*ast.Ident)
	returned := function.Body.List[len(function.Body.List)-1].(*ast.ReturnStmt).Results[0]
	if !isBool || result.Name != "bool" {
		if _, byValue := returned.(*ast.UnaryExpr); byValue {
			return r.zero(function.Type.Results.List[0].Type.(*ast.StarExpr).X, r.imports, "")
		}
		return r.keys(parameters[0], returned)
	}
	if array, ok := parameters[0].Type.(*ast.ArrayType); ok { // is there an item with these values?
		return r.itemValues(array.Elt, function.Body.List[0].(*ast.RangeStmt))
	}
	if len(parameters) == 2 {
		return r.keys(parameters[0], returned)
	}
	_, pointer := returned.(*ast.BinaryExpr).Y.(*ast.Ident)
	return list{r.keys(parameters[0], returned)[0], pointer}
}

func (r *reader) keys(parameter *ast.Field, expression ast.Expr) list {
	return r.jsonNames(parameter.Type.(*ast.StarExpr).X, parameter.Names[0].Name, expression)
}

// jsonNames are the members of one variable that an expression reads.
func (r *reader) jsonNames(kind ast.Expr, variable string, expression ast.Expr) list {
	found, seen := list{}, map[string]bool{}
	ast.Inspect(expression, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && name.Name == variable && !seen[selector.Sel.Name] {
				seen[selector.Sel.Name] = true
				owner := kind.(*ast.SelectorExpr)
				fields := packageAt(r.imports[owner.X.(*ast.Ident).Name]).fields[owner.Sel.Name]
				found = append(found, fields[selector.Sel.Name])
			}
		}
		return true
	})
	return found
}

func (r *reader) itemValues(kind ast.Expr, loop *ast.RangeStmt) any {
	owner := kind.(*ast.SelectorExpr)
	fields := packageAt(r.imports[owner.X.(*ast.Ident).Name]).fields[owner.Sel.Name]
	values := map[string]any{}
	ast.Inspect(loop.Body.List[0].(*ast.IfStmt).Cond, func(node ast.Node) bool {
		if pair, ok := node.(*ast.BinaryExpr); ok && pair.Op == token.EQL {
			values[fields[pair.X.(*ast.SelectorExpr).Sel.Name]] = r.argument(pair.Y)
			return false
		}
		return true
	})
	return values
}

// zero is the JSON form of a type's zero value: what an absent member that is no pointer is checked as.
func (r *reader) zero(kind ast.Expr, imports map[string]string, path string) any {
	switch e := kind.(type) {
	case *ast.StructType:
		return map[string]any{}
	case *ast.Ident:
		if path != "" && packageAt(path).named[e.Name] != nil {
			return r.zero(packageAt(path).named[e.Name], imports, path)
		}
		switch {
		case e.Name == "string":
			return ""
		case e.Name == "bool":
			return false
		case strings.HasPrefix(e.Name, "int"), strings.HasPrefix(e.Name, "uint"):
			return 0
		}
	case *ast.SelectorExpr:
		path := imports[e.X.(*ast.Ident).Name]
		if e.Sel.Name == "Time" || e.Sel.Name == "MicroTime" || e.Sel.Name == "Quantity" || path == "" {
			return nil
		}
		return r.zero(packageAt(path).named[e.Sel.Name], imports, path)
	}
	return nil
}

func packageAt(path string) *apiPackage {
	if found := packages[path]; found != nil {
		return found
	}
	p := &apiPackage{map[string]map[string]string{}, map[string]ast.Expr{}, map[string]string{}}
	packages[path] = p
	files, err := filepath.Glob(filepath.Join(folderOf(path), "*.go"))
	if err != nil || len(files) == 0 {
		panic("no sources of " + path)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			panic(err)
		}
		for _, declaration := range file.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok {
				for _, spec := range general.Specs {
					p.add(spec)
				}
			}
		}
	}
	return p
}

func (p *apiPackage) add(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for index, name := range s.Names {
			if index < len(s.Values) {
				value := s.Values[index]
				if conversion, ok := value.(*ast.CallExpr); ok && len(conversion.Args) == 1 {
					value = conversion.Args[0]
				}
				if literal, ok := value.(*ast.BasicLit); ok {
					p.constants[name.Name], _ = strconv.Unquote(literal.Value)
				} else if selector, ok := value.(*ast.SelectorExpr); ok { // of another package: core
					if value, known := packageAt("k8s.io/api/core/v1").constants[selector.Sel.Name]; known {
						p.constants[name.Name] = value
					}
				}
			}
		}
	case *ast.TypeSpec:
		p.named[s.Name.Name] = s.Type
		if structure, ok := s.Type.(*ast.StructType); ok {
			fields := map[string]string{}
			for _, field := range structure.Fields.List {
				if field.Tag != nil && len(field.Names) == 1 {
					tag, _ := strconv.Unquote(field.Tag.Value)
					fields[field.Names[0].Name], _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				}
			}
			p.fields[s.Name.Name] = fields
		}
	}
}
