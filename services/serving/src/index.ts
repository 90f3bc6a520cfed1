export { AccessFile, type AccessFileOptions } from './access/access-file.ts'
export { ACCESS_FLAGS } from './access/access-flags.ts'
export { AccessCounts, AccessLog, auditBudget } from './access/access-log.ts'
export { AccessRules, createAccessSelector, type IdentityRule } from './access/access-selector.ts'
export {
  createEdgeSelector,
  type EdgeAccess,
  type EdgeRoute,
  EdgeRules,
} from './access/edge-selector.ts'
export { HEADER_FLAGS, type HeaderFlags, readHeaderRules } from './access/header-rules.ts'
export { Admission } from './admission/admission.ts'
export {
  ADMISSION_DEFAULTS,
  type AdmissionBounds,
  type AdmissionClass,
  compileBounds,
  MAX_CONTROL_BYTES,
  outsideShare,
} from './admission/admission-bounds.ts'
export { AdmissionTicket, type WaitingCall } from './admission/admission-ticket.ts'
export { EndedCalls } from './admission/ended-calls.ts'
export { watchRates } from './admission/rate-watch.ts'
export type { ApiGroup } from './backend/api-groups.ts'
export type { Caller } from './backend/caller.ts'
export { decorateModel, observeModel } from './backend/decorate.ts'
export type {
  BackendSelector,
  IndexEntry,
  InferenceBackend,
  LoadParameters,
  ModelControl,
  Protocol,
  RequestedOutput,
  ResolvedModel,
  SelectorDecorator,
} from './backend/inference-backend.ts'
export { onlyResponse } from './backend/only-response.ts'
export { extensionsOf, SERVER_IDENTITY, type ServerIdentity } from './backend/server-identity.ts'
export { type ControlCall, ControlCalls } from './control/control-calls.ts'
export {
  type ControlGuard,
  type ControlGuardOptions,
  createControlGuard,
  isLoopback,
} from './control/control-guard.ts'
export {
  type ControlParameter,
  FILE_PREFIX,
  readLoadParameters,
  readUnloadDependents,
} from './control/load-parameters.ts'
export {
  invalidSetting,
  readLogChanges,
  type SettingTexts,
  type SettingValue,
  writtenLogSettings,
} from './control/log-settings.ts'
export { FLAGS_RULE, MODEL_RESOURCE_RULES, requireControl } from './control/model-control.ts'
export { RegionCalls } from './control/region-calls.ts'
export {
  requireOneProcess,
  requireSettings,
  requireTracedModel,
  type SettingsAction,
} from './control/require-settings.ts'
export {
  boundConnections,
  connectionName,
  type ListenerBounds,
} from './listeners/connection-bounds.ts'
export { drainWithin } from './listeners/drain.ts'
export { listenOn, type RunningServer } from './listeners/listen.ts'
export { checkTlsFlags, readSecureOptions, type SecureOptions } from './listeners/secure-options.ts'
export { keepSecure } from './listeners/secure-server.ts'
export { takenBytes, unsentBytes } from './listeners/taken-bytes.ts'
export { type TlsFiles, type TlsListener, tlsFlags, toTlsFiles } from './listeners/tls-flags.ts'
export { ArrivingBytes } from './request/arriving-bytes.ts'
export { toClasses } from './request/classify.ts'
export { ClientRequest, ClientRequests } from './request/client-requests.ts'
export {
  decoupledModel,
  type InputSource,
  missingData,
  refuseDuplicates,
  typedData,
  unknownDatatype,
} from './request/input-refusals.ts'
export { readRequestedOutputs } from './request/output-parameters.ts'
export { PlacedInputs, placedData } from './request/placed-inputs.ts'
export { findOutputPlace, placeOutputs } from './request/placed-outputs.ts'
export { findRegion } from './request/read-place.ts'
export { isRefusedBeforeWork } from './request/refused-before-work.ts'
export { readGivenParameters } from './request/request-parameters.ts'
export { STEPS_HEADER, tellSteps } from './request/tell-steps.ts'
export { readTrace } from './request/trace-headers.ts'
export { type FoundVersion, findModel, findVersion } from './served/find-model.ts'
export { withNames } from './served/index-names.ts'
export {
  areAllReady,
  isUnloadedReason,
  type ListedModel,
  type ListedVersion,
  readyVersions,
  selectStatistics,
  toIndex,
  unloadedReason,
} from './served/listed-model.ts'
export { loadFailed, loadOvertaken, pollFailed, versionFailures } from './served/load-errors.ts'
export { refuseFailures } from './served/refuse-failures.ts'
