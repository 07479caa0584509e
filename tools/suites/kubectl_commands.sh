# Runs the functions of kubectl's test/cmd in a copy of its scripts, and writes one line for each: name, status, seconds.
# Environment: PORT of the API server, FUNCTIONS to run (all if empty), LIMIT in seconds for one, LOGS and RESULTS.
set -o errexit -o nounset -o pipefail

source hack/lib/init.sh
source hack/lib/test.sh
SECURE_API_PORT=$PORT
ALLOW_SKEW=yes # no --match-server-version, which compares commits as well: ours says "konverge"
source test/cmd/legacy-script.sh
kube::util::ensure-gnu-sed

# Upstream looks for the name of the authority in the request for a client certificate; Python's ssl can send none.
kube::util::test_client_certificate_authentication_enabled() {
  [[ $(openssl s_client -connect "127.0.0.1:$PORT" </dev/null 2>/dev/null) == *"Requested Signature Algorithms"* ]]
}

# In place of the one that writes JUnit files: with a choice, a limit and a log for each function.
record_command() {
  local name=$1 status=0 began=$SECONDS
  if [[ -n $FUNCTIONS && " $FUNCTIONS " != *" $name "* ]]; then
    return 0
  fi
  rm -rf "$HOME/.kube/cache" # which functions ran before must not matter: some define one kind with another scope
  set +o errexit
  set -o monitor # a process group for each, so that a limit ends what a function has started as well
  ("$name") >"$LOGS/$name.log" 2>&1 </dev/null &
  local function=$!
  (sleep "$LIMIT" && echo "no end within $LIMIT s" >>"$LOGS/$name.log" && kill -KILL -- "-$function") 2>/dev/null &
  local alarm=$!
  wait "$function"
  status=$?
  kill -KILL -- "-$alarm" "-$function"
  set +o monitor
  set -o errexit
  echo "$name $status $((SECONDS - began))" >>"$RESULTS"
  FUNCTIONS_LEFT=$((FUNCTIONS_LEFT - 1))
  if ((FUNCTIONS_LEFT == 0)); then
    finish
  fi
} 2>/dev/null

finish() {
  echo "end 0 $SECONDS" >>"$RESULTS"
  exit 0
}

CONTEXT=test
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$PORT"
kubectl config set-context "$CONTEXT" --user test-admin --cluster local
kubectl config use-context "$CONTEXT"
# There is no kubelet. The annotation is what the server keeps managedFields for. The condition is what controllers write
# of such a node after a minute: functions that describe it come earlier on a fast machine.
kubectl create -f - <<<'{"apiVersion": "v1", "kind": "Node",
  "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}}, "status": {
  "capacity": {"memory": "1Gi"},
  "conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusNeverUpdated"}]}}'

SUPPORTED_RESOURCES=("*")
FUNCTIONS_LEFT=$(wc -w <<<"$FUNCTIONS") # with a choice: the end is after the last of them
runTests
# Upstream has these and does not run them.
for name in run_kubectl_create_dry_run_tests run_kubeconfig_impersonate_tests; do
  record_command "$name"
done
finish
