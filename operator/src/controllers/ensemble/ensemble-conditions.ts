import { type EnsembleConditionType, type ServedByRouter, type StepStatus } from '@tutti/api'
import { type EnsembleCheck, summarizeProblems } from '@tutti/graph'
import type { RouterView } from '../../pods/router-views.ts'
import { type ConditionState, isFalse, isTrue, isUnknown } from '../condition-state.ts'
import type { RouterTrouble } from '../router/router-trouble.ts'
import type { ExposureResult } from './exposure.ts'
import type { ExposureProblem } from './exposure-problem.ts'

/** The newest ControllerRevision of an Ensemble, which routers execute. */
export interface NewestRevision {
  readonly name: string
  /** Generation of the Ensemble that this revision accepted. */
  readonly generation: number
}

/** The facts from which the conditions of an Ensemble follow. */
export interface EnsembleState {
  readonly generation: number
  readonly isPaused: boolean
  readonly checked: EnsembleCheck
  /** Reasons why Models of an Ensemble that takes them together have pods of their own. */
  readonly apart?: readonly string[]
  /** Revision that routers execute; absent if no generation was ever accepted. */
  readonly served?: NewestRevision | undefined
  /** Message of the API server if it refuses to store the accepted revision. */
  readonly refusal?: string | undefined
  readonly steps: readonly StepStatus[]
  /** Trouble of the namespace's router. */
  readonly trouble?: RouterTrouble | undefined
  readonly routers: readonly RouterView[]
  /** Problem that keeps away requests from outside the cluster; absent without a problem or without `spec.expose`. */
  readonly exposure?: ExposureProblem | undefined
  /** Route by which routers must let in requests from outside the cluster; absent if there is none. */
  readonly route?: ExposureResult['route']
}

function servedText({ served }: EnsembleState): string {
  return served === undefined
    ? ''
    : `; routers still serve generation ${served.generation} (${served.name})`
}

function checkAccepted(state: EnsembleState): ConditionState {
  const { checked, isPaused, served, generation, refusal, apart = [] } = state
  if (isPaused) {
    return isUnknown('Paused', `changes wait while the Ensemble is paused${servedText(state)}`)
  }
  if (!checked.accepted) {
    const problems = summarizeProblems([checked, ...(checked.others ?? [])])
    return isFalse(checked.reason, `${problems}${servedText(state)}`)
  }
  if (refusal !== undefined) {
    return isFalse('RevisionRefused', `ControllerRevision: ${refusal}${servedText(state)}`)
  }
  if (served === undefined) return isFalse('Pending', `generation ${generation} is being stored`)
  const warnings = [...checked.warnings, ...apart]
  if (warnings.length === 0) return isTrue('Accepted', `stored as ${served.name}`)
  return isTrue('AcceptedWithWarnings', warnings.join('; '))
}

/** Returns true if what is served, if anything is, is not this generation: it is not accepted, or not stored. */
function isRefused({ isPaused, checked, refusal }: EnsembleState): boolean {
  return !isPaused && (!checked.accepted || refusal !== undefined)
}

function checkStepsReady({ steps }: EnsembleState): ConditionState {
  const missing = steps.filter(({ ready }) => !ready)
  const [first] = missing
  if (first === undefined) return isTrue('AllReady', `${steps.length} of ${steps.length} are ready`)
  const names = missing.map(({ name }) => name).join(', ')
  const { reason = 'NotReady', message = '' } = first
  const which = missing.length === 1 ? first.name : `${names}; ${first.name}`
  return isFalse(reason, `not ready: ${which}: ${message}`)
}

/** Finds what is wrong with the router although it keeps no request from being answered. */
function servedTroubleOf({ trouble, routers }: EnsembleState): RouterTrouble | undefined {
  return trouble?.isServed === true && routers.length > 0 ? trouble : undefined
}

function checkRouterReady(state: EnsembleState): ConditionState {
  const { trouble, routers } = state
  const isInTheWay = trouble !== undefined && servedTroubleOf(state) === undefined
  if (isInTheWay) return isFalse(trouble.reason, trouble.message)
  if (routers.length === 0) return isFalse('NoRouters', 'no router pod of the namespace is ready')
  return isTrue(
    'Ready',
    `${routers.length} router ${routers.length === 1 ? 'pod is' : 'pods are'} ready`,
  )
}

/** Checks whether every ready router executes this generation. */
function checkRoutable(state: EnsembleState): ConditionState {
  const { served, routers, route } = state
  if (isRefused(state)) {
    return isFalse('NotAccepted', `this generation is not accepted${servedText(state)}`)
  }
  if (served === undefined) return isFalse('NotAccepted', 'nothing was accepted yet')
  if (routers.length === 0) return isFalse('NoRouters', 'no router pod of the namespace is ready')
  for (const router of routers) {
    if ('error' in router) {
      return isUnknown('RouterUnreachable', `router ${router.error.message}`)
    }
    const missing = findUndone(router.served, served, route)
    if (missing !== undefined) {
      return isFalse('NotRouted', `router "${router.pod}" does not ${missing} yet`)
    }
  }
  return isTrue('Routed', `all ready routers serve ${served.name}`)
}

/** Finds the first thing that a router does not do yet, as a text like `serve NAME`; undefined if it does everything. */
export function findUndone(
  { accepted, exposed = [] }: ServedByRouter,
  served: NewestRevision,
  route: EnsembleState['route'],
): string | undefined {
  if (!accepted.includes(served.name)) return `serve ${served.name}`
  if (route === undefined || exposed.includes(route.revision)) return undefined
  return `let in requests to ${route.hosts[0]} as expose says`
}

/** @param isWaiting - whether other conditions say what is not there yet. */
function checkDegraded(state: EnsembleState, isWaiting: boolean): ConditionState {
  const { exposure, trouble, checked, served, refusal } = state
  const problems = [
    servedTroubleOf(state) === undefined ? trouble : undefined,
    exposure?.isAwaited === true ? undefined : exposure,
  ]
  const wrong = problems.find((problem) => problem !== undefined && problem.isPassing !== true)
  if (wrong !== undefined) return isTrue(wrong.reason, wrong.message)
  if (isRefused(state)) {
    if (served !== undefined) {
      const message = `this generation is not accepted${servedText(state)}`
      return isTrue('EarlierGenerationServed', message)
    }
    if (checked.accepted) return isTrue('RevisionRefused', `ControllerRevision: ${refusal}`)
    if (!WAITING.has(checked.reason)) return isTrue(checked.reason, checked.message)
  }
  return isFalse(
    'AsExpected',
    isWaiting
      ? 'nothing is wrong with the Ensemble itself; other conditions say what it waits for'
      : 'nothing is wrong',
  )
}

/** Does not count for `Ready`. */
function addServedTrouble(degraded: ConditionState, state: EnsembleState): ConditionState {
  const trouble = servedTroubleOf(state)
  if (degraded.status === 'True' || trouble === undefined) return degraded
  return isTrue(trouble.reason, `${trouble.message}; the routers that are ready still serve`)
}

/** Reasons of a check that changes by itself. */
const WAITING = new Set(['SchemaPending', 'Pending'])

/** Reasons of a router for which somebody has to change something. The credential comes by itself. */
const STUCK = new Set([
  'RouterSettingsInvalid',
  'RouterConflict',
  'RouterRefused',
  'Terminating',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
])

function checkProgressing(state: EnsembleState, ready: ConditionState): ConditionState {
  const { checked, isPaused, trouble, exposure } = state
  if (isPaused) return isFalse('Paused', 'changes wait while the Ensemble is paused')
  const passing = [trouble, exposure].find((problem) => problem?.isPassing === true)
  if (ready.status === 'True') {
    const beside = servedTroubleOf(state)
    if (beside !== undefined) return isTrue(beside.reason, beside.message)
    return passing === undefined
      ? isFalse('Complete', 'everything that was asked for is served')
      : isTrue(passing.reason, passing.message)
  }
  if (!checked.accepted && !WAITING.has(checked.reason)) {
    return isFalse(checked.reason, 'the Ensemble has to be changed')
  }
  if (trouble !== undefined && trouble.isPassing !== true && STUCK.has(trouble.reason)) {
    return isFalse(trouble.reason, trouble.message)
  }
  if (passing !== undefined) return isTrue(passing.reason, passing.message)
  return isTrue('Waiting', ready.message)
}

/** Computes all conditions of an Ensemble. Pure. */
export function conditionsOfEnsemble(
  state: EnsembleState,
): Readonly<Record<EnsembleConditionType, ConditionState>> {
  // The conditions that `Ready` needs, in the order in which they stand in each other's way.
  const parts: Parts = {
    Accepted: checkAccepted(state),
    StepsReady: checkStepsReady(state),
    RouterReady: checkRouterReady(state),
    Routable: checkRoutable(state),
  }
  const lacking = findLacking(state, parts)
  const degraded = checkDegraded(state, lacking !== undefined)
  const ready = lacking ?? sumUp(state, { ...parts, Degraded: degraded })
  return {
    ...parts,
    Degraded: addServedTrouble(degraded, state),
    Progressing: checkProgressing(state, ready),
    Ready: ready,
  }
}

type Part = Exclude<EnsembleConditionType, 'Degraded' | 'Progressing' | 'Ready'>
type Parts = Readonly<Record<Part, ConditionState>>

/** Finds what is first in the way of `Ready`; undefined if nothing is. */
function findLacking(
  { isPaused, exposure }: EnsembleState,
  states: Parts,
): ConditionState | undefined {
  const { Accepted, ...others } = states
  const steps = findStepCause(states)
  if (!isPaused && steps !== undefined) return steps
  for (const condition of Object.values(isPaused ? others : { Accepted, ...others })) {
    if (condition.status !== 'True') return { ...condition, status: 'False' }
  }
  if (exposure?.isAwaited === true) return isFalse(exposure.reason, exposure.message)
  return undefined
}

/** Finds the cause among the steps. A signature is pending while the Model of a step has no pod: why it has none says more. */
function findStepCause({ Accepted, StepsReady }: Parts): ConditionState | undefined {
  const isPending = Accepted.status === 'False' && Accepted.reason === 'SchemaPending'
  const isTold = StepsReady.status === 'False' && !UNTOLD_STEPS.has(StepsReady.reason)
  return isPending && isTold ? StepsReady : undefined
}

/** Reasons of steps that say no more than that a signature is pending. */
const UNTOLD_STEPS = new Set(['NotFound', 'Pending', 'NotReady'])

/** Builds `Ready` of an Ensemble that lacks nothing. */
function sumUp(
  { isPaused }: EnsembleState,
  states: Parts & { readonly Degraded: ConditionState },
): ConditionState {
  const { Degraded: degraded } = states
  if (degraded.status === 'True') return { ...degraded, status: 'False' }
  return isPaused
    ? isTrue('Paused', states.Accepted.message)
    : isTrue('Ready', states.Routable.message)
}
