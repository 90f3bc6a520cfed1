// The texts of docs/conditions.md about each condition and reason. `npm run gen` fails for a reason of the operator that is not
// here, and for a text here whose reason the operator does not have. Those of pods come from Kubernetes: each is tried by
// operator/src/testing/pod-causes.ts, or is one of ours.

/** Meanings of `True`, by kind and type. */
export const CONDITIONS = {
  Model: {
    Accepted: 'The operator has checked the Model. Clients call it by its `modelName`.',
    ArtifactsReady: "A pod has the model's files.",
    SchemaVerified:
      'The model has the inputs and outputs that the Model declares, or the Model declares none.',
    WorkloadAvailable:
      'Enough pods take requests, old or new: the minimum of `scaling` less `rollout.maxUnavailable`.',
    Routable: 'Every ready router of the namespace sends requests to a pod of this generation.',
    Progressing: 'Pods are being created, replaced or removed.',
    Degraded: 'Something is wrong. Requests may still be answered.',
    Suspended: 'The Model has no pods, because `spec.suspend` is true.',
    Ready:
      'The Model is accepted, verified, available and routable, and no pods of an earlier generation are left. The first request is answered.',
  },
  Ensemble: {
    Accepted:
      'The operator has checked this generation against its Models and stored it. Routers may execute it.',
    StepsReady:
      'Each step has a pod, or an Ensemble, that can answer. `status.steps` names each step that has none, and why.',
    RouterReady: 'A router pod of the namespace is ready.',
    Routable:
      'Every ready router pod executes this generation and, if the Ensemble is exposed, lets in requests to its hosts, by the present tokens.',
    Progressing: 'The operator or Kubernetes is changing something.',
    Degraded: 'Something is wrong. Requests may still be answered.',
    Ready:
      'The Ensemble is accepted and routable, its steps and a router are ready, and it is exposed as asked. The first request is answered.',
  },
  Router: {
    Progressing: 'Pods are being created, replaced or removed.',
    Degraded: 'Something is wrong. The pods that are ready still answer.',
    BuiltinsReady:
      'Enough pods with built-ins are ready, or no Ensemble needs any. It does not count for `Ready`: Ensembles without built-ins are served all the same.',
    Ready: 'A router pod answers requests.',
  },
}

const NO_ROUTER =
  'No router pod of the namespace is ready: `kubectl describe routers.tutti.dev default`.'
const NAME_CONFLICT =
  'An older Model or Ensemble has the served name. Choose another `modelName`, or delete the other resource.'
const INVALID_SPEC =
  'The stored resource does not fit the schema of this operator, which is older or newer than the resource.'
const ROUTER_UNREACHABLE = 'A ready router pod does not tell the operator what it serves.'
const TERMINATING =
  'An object is being deleted. It is created again afterwards. If a finalizer holds it, the message names the finalizer.'

/** Meanings of reasons and what to do, by kind. */
export const REASONS = {
  Model: {
    Accepted: 'The Model is accepted.',
    AsExpected: 'Nothing is wrong.',
    AcceptedWithWarnings: 'The Model is accepted. The message has the warnings.',
    ApplyFailed:
      'A quota or a missing right refuses an object, or the API server did not answer. The operator tries again, with growing intervals up to five minutes.',
    Asleep:
      'No request comes for the model, so it has no pods ([scale to zero](scale-to-zero.md)). The first request starts one.',
    Available: 'Enough pods take requests.',
    Complete: 'All pods are of this generation.',
    DeploymentPaused:
      'The Deployment is paused by hand, and an edit waits for it. Run `kubectl rollout resume deployment/NAME-step`.',
    Discovered: 'The inputs and outputs were read from the model.',
    FetchFailed:
      "The model's files could not be fetched, or have another digest. The message is that of `tutti-step fetch`, or of `cp` in an image.",
    Fetched: "A pod has fetched the model's files.",
    Fetching: "A pod is fetching the model's files.",
    ClaimNotFound:
      'The ResourceClaim or ResourceClaimTemplate of `accelerator.claims` does not exist. Create it; the pods stay as they are until then.',
    ClaimsNotServed:
      'The cluster does not serve `resource.k8s.io/v1`, so pods would start without the devices of `accelerator.claims`. Kubernetes 1.34 and newer serve it; or set `accelerator.resourceName` and `count`.',
    FieldLeftOut:
      'The API server does not keep `scaling.behavior.*.tolerance`, because its feature gate is off. Remove the field, or turn the gate on.',
    Held: 'Requests wait in every ready router for the first pod.',
    HostInvalid:
      'The Model that `runsWith` names is the Model itself, or runs in the pods of another one. The message says which; name a Model that has pods of its own.',
    HostNotFound:
      'There is no Model of the name in `runsWith` in the namespace. Create it, or remove the field; the pods stay as they are until then.',
    HostAccessNotAllowed:
      "The operator allows Models no access to nodes. The message names the field. Change it, or set the chart's `step.allowHostAccess`.",
    InvalidSpec: INVALID_SPEC,
    ModelLoadFailed: 'The model cannot be loaded. The message is the error of its engine.',
    Mounted: "A pod has mounted the model's files.",
    Moving:
      'The Ensemble of which the message speaks no longer takes its Models together: its pods stay as they are until the Models are ready in others.',
    NameConflict: NAME_CONFLICT,
    NoFreeDevice:
      'A new pod of a rollout finds no free device, because old pods keep theirs. Free one, or set `rollout.whenFull: Replace` ([GPUs](gpus.md)).',
    NoReplica: 'No pod of this generation has loaded the model yet.',
    NoRouters: NO_ROUTER,
    NotAccepted: 'A new pod has loaded a revision that the operator has not accepted yet.',
    NotRouted: 'A router does not serve the new revision yet.',
    NotSuspended: '`spec.suspend` is not true.',
    ObjectConflict:
      'An object of that name belongs to something else. Delete or rename that object.',
    Paused: '`spec.paused` is true: the pods stay as they are.',
    Pending: 'No pod, or no router, has answered yet.',
    PodsNotReady:
      'Too few pods take requests, and Kubernetes reports no failure of a pod.',
    ProgressDeadlineExceeded: 'New pods have not become ready in time.',
    Ready: 'The first request is answered.',
    Reconciling: 'The operator has just changed the Deployment.',
    Refused: 'The API server refuses an object. The message has its words.',
    ReplicasNotOwned:
      'An autoscaler or another program writes the replicas of the Deployment, and the operator leaves them. The message names the program, and what to set ([replicas](models.md#replicas)).',
    RollingOut: 'Pods are being replaced.',
    Routed: 'Every ready router serves the model.',
    RouterUnreachable: ROUTER_UNREACHABLE,
    ScaledToZero: 'The Model asks for no pods.',
    SchemaMismatch:
      "`inputs`, `outputs` or `maxBatchSize` differ from the model's. The message names the field.",
    SecretNotFound:
      'The Secret of `storage.secretRef` does not exist. Create it; the pods stay as they are until then.',
    Suspended: '`spec.suspend` is true, and there are no pods.',
    Suspending: '`spec.suspend` is true, and the last pods end their requests.',
    Terminating: TERMINATING,
    Verified: 'The model has the inputs and outputs that the Model declares.',
    Waking: 'A pod of a Model that had none starts, and requests wait for it. `status.start` has its progress.',
  },
  Ensemble: {
    Accepted: 'This generation is accepted and stored.',
    AcceptedWithWarnings: 'This generation is accepted. The message has the warnings.',
    AllReady: 'Every step can answer.',
    AmbiguousReference:
      'A reference may mean a tensor of the Ensemble or the output of a step. Rename one of them.',
    AsExpected: 'Nothing is wrong with the Ensemble itself.',
    CallInvalid:
      'A step has a rule for its call that its model cannot have, such as `hedge` of a decoupled model. The message says why.',
    Complete: 'The Ensemble is served as its spec asks.',
    CycleDetected:
      'Steps wait for one another, or Ensembles contain one another. Remove one of the references.',
    DatatypeMismatch: 'A tensor is written with one datatype and read with another.',
    DecoupledInvalid: 'The responses of decoupled models cannot be combined.',
    EarlierGenerationServed:
      'This generation is not accepted; `Accepted` says why. Requests get the earlier generation.',
    GatewayApiMissing:
      'The cluster does not have the CRDs of Gateway API. Install them, or use `expose.ingress`.',
    ConditionInvalid:
      'A condition (`when`) cannot be evaluated, stands where it cannot be, or `firstOf` names a tensor that it never comes to. The message says which.',
    BuiltinInvalid:
      'A step names a built-in that is not there, or an option or an input of it does not fit. The message says which, and what is wanted.',
    RepeatInvalid:
      'A step cannot run for each item (`forEach`), or in a loop (`loop`), as it says. The message says why and what to do.',
    InvalidSpec: INVALID_SPEC,
    IngressClassNotFound:
      'The cluster has no IngressClass of that name. Change `expose.ingress.className`, or install its controller.',
    IssuerUnreadable:
      'The operator cannot read the keys that verify ServiceAccount tokens. It tries again; until then such tokens are not accepted.',
    LimitExceeded: '`maxBatchSize` is larger than that of a model. Lower it.',
    MissingInput: 'Nothing feeds an input of a model.',
    MultipleProducers: 'Two outputs or inputs feed one tensor.',
    NameConflict: NAME_CONFLICT,
    NoRouters: NO_ROUTER,
    NotAccepted: 'The operator has accepted no generation yet, or not this one.',
    NotFound: 'No Model or Ensemble has the served name that the step names.',
    NotReady: 'The Model or Ensemble of a step is not ready.',
    NotRouted: 'A router does not serve this generation yet.',
    OutputInvalid: 'The name of an output is not valid.',
    Paused: '`spec.paused` is true: nothing is checked or changed.',
    Pending: 'The operator is storing this generation, or a step has no status yet.',
    Ready: 'The first request is answered, or a router is ready.',
    RevisionRefused:
      'The API server refuses to store the accepted generation: a quota, a right, or another object of that name.',
    Routed: 'Every ready router serves this generation.',
    RouteConflict: 'An Ingress or HTTPRoute of that name belongs to something else.',
    RouteNotAccepted: 'The Gateway refuses the HTTPRoute: its namespace, host or listener.',
    RoutePending: 'No Gateway of that name has accepted the HTTPRoute yet.',
    RouteRefused: 'The API server refuses the Ingress or HTTPRoute. The message has its words.',
    RouterUnreachable: ROUTER_UNREACHABLE,
    SchemaPending:
      'The signature of a Model is not known yet: it is not applied, or not loaded. The message names it.',
    ShapeMismatch: 'A tensor is written with one shape and read with another.',
    Terminating: TERMINATING,
    TlsSecretMissing:
      'The Secret of `expose.ingress.tls` does not exist, or lacks a key. Create it, or let cert-manager issue it.',
    TokenMissing:
      'The Secret of `expose.auth`, or a key in it, does not exist. Until it does, no caller gets in by that key.',
    UnknownModel: 'A step names a version that is not served, or a Model where an Ensemble is.',
    UnknownStep: 'A reference names no step.',
    UnknownTensor: 'A reference, or a key of a map, names no tensor.',
    UnreachableStep: 'Nothing reads the outputs of a step. Use one, or remove the step.',
    UnusedInput: 'Nothing reads an input of the Ensemble. Use it, or remove it.',
    Waiting: 'The message of `Ready` names what the Ensemble waits for.',
  },
  Router: {
    AsExpected: 'Nothing is wrong.',
    BuiltinsConflict:
      'An object named `tutti-builtins` belongs to something else. Delete or rename that object.',
    BuiltinsDegraded:
      'Something is wrong with the pods with built-ins; those that are ready still answer. The message begins with the reason.',
    BuiltinsRefused:
      'The API server refuses an object around the pods with built-ins. The message has its words.',
    Complete: 'All pods are as the Router asks.',
    CredentialMissing:
      'There is no credential for NATS, or it cannot be renewed. The message says what failed.',
    FieldLeftOut:
      'The API server does not keep `scaling.behavior.*.tolerance`, because its feature gate is off. Remove the field, or turn the gate on.',
    NoRouters: 'No router pod is ready. Look at the Deployment `tutti-router`.',
    NotNeeded: 'No Ensemble has a step that runs in pods with built-ins, so there are none.',
    Pending: 'The operator has not made the Deployment `tutti-builtins` yet.',
    PodsNotReady:
      'Too few pods with built-ins are ready, and Kubernetes reports no failure of a pod.',
    Ready: 'A router pod answers requests, or enough pods with built-ins do.',
    ReplicasNotOwned:
      'An autoscaler or another program writes the replicas of a Deployment, and the operator leaves them. The message names the program. Delete it; `scaling`, or `builtins.scaling`, of the Router then counts again.',
    RollingOut: 'Pods are being created, replaced or removed.',
    RouterConflict:
      'An object of that name belongs to something else. Delete or rename that object.',
    RouterRefused: 'The API server refuses an object of the router. The message has its words.',
    RouterSettingsInvalid:
      'The operator cannot serve a field of the Router. The message names the field.',
    ScaledToZero: '`builtins.scaling` asks for no pods with built-ins.',
    Terminating: TERMINATING,
  },
  Pod: {
    CrashLoopBackOff: 'The container ends at each start. The message has its last lines.',
    CreateContainerConfigError:
      'The kubelet cannot configure the container, because a Secret or ConfigMap of its environment is missing, for example.',
    CreateContainerError: 'The kubelet cannot create the container.',
    ErrImageNeverPull: 'The image is not on the node, and its pull policy is `Never`.',
    ErrImagePull: 'The image cannot be pulled.',
    Error: 'The container ended with an error. The message has its last lines.',
    Evicted: 'The node removed the pod. The message says what the node lacks.',
    FailedAttachVolume:
      'A volume cannot be attached to the node: another node has it, or its driver fails.',
    FailedBinding: 'A claim has no volume. The message is that of the controller of volumes.',
    FailedCreate:
      'A quota, a limit range, a policy or a webhook of the namespace refuses the pods, or something that they name does not exist.',
    FailedCreatePodSandBox: 'The node cannot make the network of the pod.',
    FailedMount: 'A volume cannot be mounted, because its Secret is missing, for example.',
    FetchFailed: "The model's files could not be fetched, or have another digest.",
    ImagePullBackOff: 'The image cannot be pulled.',
    InvalidImageName: "The image's name is not valid.",
    ModelLoadFailed: 'The model cannot be loaded; the process lives.',
    NetworkNotReady: 'The network of the node is not ready.',
    NodeNotReady: 'The node of the pod does not answer.',
    OOMKilled: 'The container used more memory than its limit.',
    PodFailed: 'The pod failed without a reason. Other reasons of nodes appear as they are.',
    PostStartHookError: 'The hook of the container after its start fails.',
    ProvisioningFailed:
      'No volume can be made for a claim. The message is that of the controller of volumes.',
    RegistryUnavailable: 'The registry of the image does not answer.',
    RunContainerError: 'The container cannot be started.',
    SchedulerError: 'The scheduler failed. The message has its words.',
    SchedulingGated: 'Something holds back the scheduling of the pod (`schedulingGates`).',
    SignatureValidationFailed: 'The node refuses the signature of the image.',
    StartError: 'The program of the container cannot be started.',
    Terminated: 'The node was shut down.',
    UnexpectedAdmissionError: 'The node refused the pod, because it lacks a device, for example.',
    Unhealthy: 'A probe of the container fails. The message is that of the kubelet.',
    Unschedulable: 'No node can run the pod. The message is that of the scheduler.',
  },
}
