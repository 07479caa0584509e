package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "go.konverge.dev", Version: "v1"}

// Greeting is the custom resource of the operator under test.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec"`
	Status            GreetingStatus `json:"status,omitempty"`
}

type GreetingSpec struct {
	Text string `json:"text"`
}

type GreetingStatus struct {
	Said               string `json:"said,omitempty"`
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
}

type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

func (g *Greeting) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (l *GreetingList) DeepCopyObject() runtime.Object {
	copied := GreetingList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Greeting))
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	shortest := int64(1)
	notEmpty := apiextensionsv1.JSONSchemaProps{Type: "string", MinLength: &shortest}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	object := func(required []string, properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Required: required, Properties: properties}
	}
	root := object([]string{"spec"}, map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   object([]string{"text"}, map[string]apiextensionsv1.JSONSchemaProps{"text": notEmpty}),
		"status": object(nil, map[string]apiextensionsv1.JSONSchemaProps{"said": text, "observedGeneration": number}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings.go.konverge.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupVersion.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Greeting", Plural: "greetings"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
