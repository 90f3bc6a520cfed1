import type { EnsembleStepSpec } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import { calledNamesOf } from '@tutti/graph'
import type { RouterView } from '../../pods/router-views.ts'
import { acceptedOf, byRevision, type Revision } from '../accepted-revisions.ts'
import type { Caches } from '../caches.ts'
import { readEnsemble } from '../read-ensemble.ts'
import { isKept } from './router-need.ts'

type Ensembles = Pick<Caches, 'ensembles' | 'revisions'>

/**
 * Tells whether an Ensemble of a namespace has steps that run in the namespace's pods with built-ins: by its newest accepted
 * revision, which routers execute, or by its spec, which may be accepted next. Pure.
 */
export function needsBuiltins({ ensembles, revisions }: Ensembles, namespace: string): boolean {
  return ensembles.inNamespace(namespace).some((ensemble) => {
    if (!isKept(ensemble)) return false
    const { spec } = readEnsemble(ensemble).manifest ?? {}
    if (spec?.paused !== true && (spec?.steps ?? []).some(runsOnItsOwn)) return true
    const newest = revisions.byOwner(ensemble.metadata).toSorted(byRevision).find(acceptedOf)
    return newest !== undefined && runsBuiltins(newest)
  })
}

/** Tells whether a ready router still executes steps in these pods, or whether that cannot be known. Pure. */
export function areBuiltinsServed(
  { revisions }: Pick<Caches, 'revisions'>,
  namespace: string,
  views: readonly RouterView[],
): boolean {
  const names = new Set(views.flatMap((view) => ('error' in view ? [] : view.served.accepted)))
  return (
    views.some((view) => 'error' in view) ||
    revisions
      .inNamespace(namespace)
      .some((revision) => names.has(revision.metadata.name) && runsBuiltins(revision))
  )
}

/** Tells whether a ControllerRevision is of an Ensemble with steps that run in the namespace's pods with built-ins. */
export function runsBuiltins(revision: Revision): boolean {
  const accepted = acceptedOf(revision)
  if (accepted?.kind !== 'Ensemble') return false
  return calledNamesOf(accepted.graph).includes(BUILTIN_HOST)
}

/** Tells whether a step runs a built-in, and not beside a Model. */
function runsOnItsOwn({ builtin }: Pick<EnsembleStepSpec, 'builtin'>): boolean {
  return builtin !== undefined && builtin.model === undefined
}
