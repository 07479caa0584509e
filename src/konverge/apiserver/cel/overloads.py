"""Overloads of functions: one line each, id and signature; a receiver stands before the dot."""

from __future__ import annotations

TEXT = """
!_
  logical_not (bool) bool
-_
  negate_double (double) double
  negate_int64 (int) int
@in
  in_list (A, list(A)) bool
  in_map (A, map(A, B)) bool
@not_strictly_false
  not_strictly_false (bool) bool
_!=_
  not_equals (A, A) bool
_==_
  equals (A, A) bool
_%_
  modulo_int64 (int, int) int
  modulo_uint64 (uint, uint) uint
_&&_
  logical_and (bool, bool) bool
_||_
  logical_or (bool, bool) bool
_*_
  multiply_double (double, double) double
  multiply_int64 (int, int) int
  multiply_uint64 (uint, uint) uint
_+_
  add_bytes (bytes, bytes) bytes
  add_double (double, double) double
  add_duration_duration (span, span) span
  add_duration_timestamp (span, time) time
  add_timestamp_duration (time, span) time
  add_int64 (int, int) int
  add_list (list(A), list(A)) list(A)
  add_string (string, string) string
  add_uint64 (uint, uint) uint
_-_
  subtract_double (double, double) double
  subtract_duration_duration (span, span) span
  subtract_int64 (int, int) int
  subtract_timestamp_duration (time, span) time
  subtract_timestamp_timestamp (time, time) span
  subtract_uint64 (uint, uint) uint
_/_
  divide_double (double, double) double
  divide_int64 (int, int) int
  divide_uint64 (uint, uint) uint
_?._
  select_optional_field (dyn, string) opt(V)
_?_:_
  conditional (bool, A, A) A
_[?_]
  list_optindex_optional_int (list(V), int) opt(V)
  optional_list_optindex_optional_int (opt(list(V)), int) opt(V)
  map_optindex_optional_value (map(K, V), K) opt(V)
  optional_map_optindex_optional_value (opt(map(K, V)), K) opt(V)
_[_]
  index_list (list(A), int) A
  index_map (map(A, B), A) B
  optional_list_index_int (opt(list(V)), int) opt(V)
  optional_map_index_value (opt(map(K, V)), K) opt(V)
add
  quantity_add Quantity.(Quantity) Quantity
  quantity_add_int Quantity.(int) Quantity
allowed
  decision_allowed Decision.() bool
asApproximateFloat
  quantity_get_float Quantity.() double
asInteger
  quantity_get_int Quantity.() int
bool
  bool_to_bool (bool) bool
  string_to_bool (string) bool
bytes
  bytes_to_bytes (bytes) bytes
  string_to_bytes (string) bytes
cel.@mapInsert
  @mapInsert_map_key_value (map(K, V), K, V) map(K, V)
  @mapInsert_map_map (map(K, V), map(K, V)) map(K, V)
charAt
  string_char_at_int string.(int) string
check
  pathcheck_check PathCheck.(string) Decision
  resourcecheck_check ResourceCheck.(string) Decision
cidr
  string_to_cidr (string) CIDR
compareTo
  quantity_compare_to Quantity.(Quantity) int
  semver_compare_to Semver.(Semver) int
contains
  contains_string string.(string) bool
containsCIDR
  cidr_contains_cidr_string CIDR.(string) bool
  cidr_contains_cidr CIDR.(CIDR) bool
containsIP
  cidr_contains_ip_string CIDR.(string) bool
  cidr_contains_ip_ip CIDR.(IP) bool
distinct
  list_distinct list(T).() list(T)
double
  double_to_double (double) double
  int64_to_double (int) double
  string_to_double (string) double
  uint64_to_double (uint) double
duration
  duration_to_duration (span) span
  string_to_duration (string) span
dyn
  to_dyn (A) dyn
endsWith
  ends_with_string string.(string) bool
error
  decision_error Decision.() string
errored
  decision_errored Decision.() bool
family
  ip_family IP.() int
fieldSelector
  authorizer_fieldselector ResourceCheck.(string) ResourceCheck
find
  string_find_string string.(string) string
findAll
  string_find_all_string string.(string) list(string)
  string_find_all_string_int string.(string, int) list(string)
first
  list_first list(V).() opt(V)
flatten
  list_flatten list(list(T)).() list(T)
  list_flatten_int list(dyn).(int) list(dyn)
format
  string_format string.(list(dyn)) string
format.named
  format-named (string) opt(Format)
getEscapedPath
  url_get_escaped_path URL.() string
getHost
  url_get_host URL.() string
getHostname
  url_get_hostname URL.() string
getPort
  url_get_port URL.() string
getQuery
  url_get_query URL.() map(string, list(string))
getScheme
  url_get_scheme URL.() string
group
  authorizer_group Authorizer.(string) GroupCheck
hasValue
  optional_hasValue opt(V).() bool
includes
  list_includes_dyn_dyn dyn.(dyn) bool
indexOf
  string_index_of_string string.(string) int
  string_index_of_string_int string.(string, int) int
  list_a_index_of_int list(A).(A) int
int
  int64_to_int64 (int) int
  double_to_int64 (double) int
  duration_to_int64 (span) int
  string_to_int64 (string) int
  timestamp_to_int64 (time) int
  uint64_to_int64 (uint) int
ip
  string_to_ip (string) IP
  cidr_ip CIDR.() IP
ip.isCanonical
  ip_is_canonical (string) bool
isCIDR
  is_cidr (string) bool
isGlobalUnicast
  ip_is_global_unicast IP.() bool
isGreaterThan
  quantity_is_greater_than Quantity.(Quantity) bool
  semver_is_greater_than Semver.(Semver) bool
isIP
  is_ip (string) bool
isInteger
  quantity_is_integer Quantity.() bool
isLessThan
  quantity_is_less_than Quantity.(Quantity) bool
  semver_is_less_than Semver.(Semver) bool
isLinkLocalMulticast
  ip_is_link_local_multicast IP.() bool
isLinkLocalUnicast
  ip_is_link_local_unicast IP.() bool
isLoopback
  ip_is_loopback IP.() bool
isQuantity
  is_quantity_string (string) bool
isSemver
  is_semver_string (string) bool
  is_semver_string_bool (string, bool) bool
isURL
  is_url_string (string) bool
isUnspecified
  ip_is_unspecified IP.() bool
join
  list_join list(string).() string
  list_join_string list(string).(string) string
labelSelector
  authorizer_labelselector ResourceCheck.(string) ResourceCheck
last
  list_last list(V).() opt(V)
lastIndexOf
  string_last_index_of_string string.(string) int
  string_last_index_of_string_int string.(string, int) int
  list_a_last_index_of_int list(A).(A) int
lists.range
  lists_range (int) list(int)
lowerAscii
  string_lower_ascii string.() string
major
  semver_major Semver.() int
masked
  cidr_masked CIDR.() CIDR
matches
  matches (string, string) bool
  matches_string string.(string) bool
minor
  semver_minor Semver.() int
name
  resourcecheck_name ResourceCheck.(string) ResourceCheck
namespace
  resourcecheck_namespace ResourceCheck.(string) ResourceCheck
optional.none
  optional_none () opt(V)
optional.of
  optional_of (V) opt(V)
optional.ofNonZeroValue
  optional_ofNonZeroValue (V) opt(V)
optional.unwrap
  optional_unwrap (list(opt(V))) list(V)
or
  optional_or_optional opt(V).(opt(V)) opt(V)
orValue
  optional_orValue_value opt(V).(V) V
patch
  semver_patch Semver.() int
path
  authorizer_path Authorizer.(string) PathCheck
prefixLength
  cidr_prefix_length CIDR.() int
quantity
  string_to_quantity (string) Quantity
reason
  decision_reason Decision.() string
replace
  string_replace_string_string string.(string, string) string
  string_replace_string_string_int string.(string, string, int) string
resource
  groupcheck_resource GroupCheck.(string) ResourceCheck
reverse
  list_reverse list(T).() list(T)
semver
  string_to_semver (string) Semver
  string_bool_to_semver (string, bool) Semver
serviceAccount
  authorizer_serviceaccount Authorizer.(string, string) Authorizer
sets.contains
  list_sets_contains_list (list(T), list(T)) bool
sets.equivalent
  list_sets_equivalent_list (list(T), list(T)) bool
sets.intersects
  list_sets_intersects_list (list(T), list(T)) bool
sign
  quantity_sign (Quantity) int
size
  size_bytes (bytes) int
  bytes_size bytes.() int
  size_list (list(A)) int
  list_size list(A).() int
  size_map (map(A, B)) int
  map_size map(A, B).() int
  size_string (string) int
  string_size string.() int
slice
  list_slice list(T).(int, int) list(T)
split
  string_split_string string.(string) list(string)
  string_split_string_int string.(string, int) list(string)
startsWith
  starts_with_string string.(string) bool
string
  string_to_string (string) string
  bool_to_string (bool) string
  bytes_to_string (bytes) string
  double_to_string (double) string
  duration_to_string (span) string
  int64_to_string (int) string
  timestamp_to_string (time) string
  uint64_to_string (uint) string
  ip_to_string (IP) string
  cidr_to_string (CIDR) string
strings.quote
  strings_quote (string) string
sub
  quantity_sub Quantity.(Quantity) Quantity
  quantity_sub_int Quantity.(int) Quantity
subresource
  resourcecheck_subresource ResourceCheck.(string) ResourceCheck
substring
  string_substring_int string.(int) string
  string_substring_int_int string.(int, int) string
sum
  list_int_sum_int list(int).() int
  list_uint_sum_uint list(uint).() uint
  list_double_sum_double list(double).() double
  list_duration_sum_duration list(span).() span
timestamp
  timestamp_to_timestamp (time) time
  int64_to_timestamp (int) time
  string_to_timestamp (string) time
trim
  string_trim string.() string
type
  type (A) type(A)
uint
  uint64_to_uint64 (uint) uint
  double_to_uint64 (double) uint
  int64_to_uint64 (int) uint
  string_to_uint64 (string) uint
unwrapOpt
  optional_unwrapOpt list(opt(V)).() list(V)
upperAscii
  string_upper_ascii string.() string
url
  string_to_url (string) URL
validate
  format-validate Format.(string) opt(list(string))
value
  optional_value opt(V).() V
jsonpatch.escapeKey
  jsonpatch_escapeKey_string (string) string
"""
