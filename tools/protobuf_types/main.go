// Dumps, as JSON on standard output, how the Kubernetes API types are written as protobuf: numbers and types of fields
// by their tags. Run by tools/generate_protobuf.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apidiscoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/scheme"
)

// field is [number, JSON name, type, omitted when zero, inlined, Go name].
type field [6]any

var (
	message  = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	messages = map[string][]field{}
	special  = map[string]string{
		"v1.Time": "time", "v1.MicroTime": "microtime", "v1.Duration": "duration", "resource.Quantity": "quantity",
		"intstr.IntOrString": "intOrString", "runtime.RawExtension": "raw", "v1.FieldsV1": "raw", "v1.JSON": "raw",
		"v1beta1.JSON":                   "raw",
		"v1.JSONSchemaPropsOrArray":      "schemaOrArray",
		"v1.JSONSchemaPropsOrBool":       "schemaOrBool",
		"v1.JSONSchemaPropsOrStringArray": "schemaOrStrings",
	}
	scalars = map[reflect.Kind]string{
		reflect.String: "s", reflect.Bool: "b", reflect.Int32: "i", reflect.Int64: "i", reflect.Int: "i",
		reflect.Uint32: "u", reflect.Uint64: "u", reflect.Float64: "d", reflect.Float32: "f",
	}
)

func describe(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return describe(t.Elem())
	}
	if name, found := special[t.String()]; found {
		if strings.HasPrefix(name, "schema") {
			props, _ := t.FieldByName("Schema")
			return "!" + name + " " + describe(props.Type)
		}
		return "!" + name
	}
	if scalar, found := scalars[t.Kind()]; found {
		return scalar
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		if reflect.PointerTo(t).Implements(message) { // a list that is a message of its own
			return "[" + describe(t.Elem())
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "{}" + describe(t.Elem())
	case reflect.Struct:
		return "@" + visit(t)
	}
	panic("no protobuf form: " + t.String())
}

func visit(t reflect.Type) string {
	name := t.PkgPath() + "." + t.Name()
	if _, seen := messages[name]; seen {
		return name
	}
	messages[name] = []field{}
	var fields []field
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			panic(fmt.Sprint(name, f.Name, err))
		}
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := tag == ""
		omit := f.Type.Kind() != reflect.Pointer && strings.Contains(options, "omit")
		fields = append(fields, field{number, tag, describe(f.Type), omit, inline, f.Name})
	}
	messages[name] = fields
	return name
}

func main() {
	more := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, admissionv1beta1.AddToScheme, imagepolicyv1alpha1.AddToScheme,
		apidiscoveryv2.AddToScheme, apidiscoveryv2beta1.AddToScheme,
	} {
		if err := add(more); err != nil {
			panic(err)
		}
	}
	kinds := map[string]string{}
	for _, known := range []map[schema.GroupVersionKind]reflect.Type{
		scheme.Scheme.AllKnownTypes(), apiextensions.Scheme.AllKnownTypes(), aggregator.Scheme.AllKnownTypes(),
		more.AllKnownTypes(),
	} {
		for gvk, t := range known {
			if gvk.Version == runtime.APIVersionInternal {
				continue
			}
			kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = visit(t)
		}
	}
	for _, v := range []any{metav1.PartialObjectMetadata{}, metav1.PartialObjectMetadataList{}} {
		t := reflect.TypeOf(v)
		kinds["meta.k8s.io/v1/"+t.Name()] = visit(t)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"messages": messages, "kinds": kinds})
}
