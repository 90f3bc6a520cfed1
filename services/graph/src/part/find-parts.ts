import type { EnsemblePlan } from '../plan/ensemble-plan.ts'

type Steps = readonly number[]

/**
 * Finds the largest parts of a graph that may run as one call each: connected steps that no path leaves and enters again. No step of a
 * part waits for more than it would by itself, and nothing behind the part waits longer.
 *
 * @param mayJoin - tells whether these steps may be of one part, whatever lies between them.
 * @returns the indexes of the steps of each part of several steps, ascending.
 */
export function findParts(
  plan: Pick<EnsemblePlan, 'steps' | 'tensors'>,
  mayJoin: (steps: Steps) => boolean,
): readonly Steps[] {
  const order = orderOf(plan)
  let classOf: readonly string[] = plan.steps.map(() => '')
  for (;;) {
    const isAlike = (steps: Steps): boolean =>
      new Set(steps.map((step) => classOf[step])).size === 1 && mayJoin(steps)
    const parts = joinSteps(plan, order.before, isAlike)
    // Steps of a part that wait for other things, or are waited for by others, go apart.
    const next = plan.steps.map(({ index }) => {
      const number = parts.findIndex((steps) => steps.includes(index))
      const isOutside = (step: number): boolean => parts[number]?.includes(step) !== true
      // A step that nobody needs is not waited for by those that depend on it; whether it is needed, a part as a whole does not say.
      if (order.linked(index).some(isOutside)) return `${index}`
      const ends = [order.behind(index, 'before'), order.behind(index, 'after')]
      return JSON.stringify([number, ...ends.map((steps) => steps.filter(isOutside))])
    })
    const isUniform = parts.every((steps) => new Set(steps.map((step) => next[step])).size === 1)
    if (isUniform) return parts.filter((steps) => steps.length > 1)
    classOf = next
  }
}

/** Joins steps along the tensors between them, as far as they may. */
function joinSteps(
  { steps, tensors }: Pick<EnsemblePlan, 'steps' | 'tensors'>,
  before: readonly Steps[],
  mayJoin: (steps: Steps) => boolean,
): readonly Steps[] {
  const partOf: Steps[] = steps.map(({ index }) => [index])
  const join = (maker: number, reader: number): boolean => {
    const [first, second] = [partOf[maker], partOf[reader]]
    if (first === undefined || second === undefined || first === second) return false
    const joined = [...first, ...second].toSorted((a, b) => a - b)
    if (!mayJoin(joined) || isEnteredAgain(joined, partOf, before)) return false
    for (const step of joined) partOf[step] = joined
    return true
  }
  // Two parts may be joined once what lies between them belongs to one of them.
  for (let hasJoined = true; hasJoined; ) {
    hasJoined = false
    for (const { index, reads } of steps) {
      for (const tensor of reads) {
        const maker = tensors[tensor]?.step
        if (maker !== undefined && join(maker, index)) hasJoined = true
      }
    }
  }
  return [...new Set(partOf)]
}

/** Tells whether some path leaves the steps and enters them again, where it passes each other part as a whole. */
function isEnteredAgain(steps: Steps, partOf: readonly Steps[], before: readonly Steps[]): boolean {
  const inside = new Set(steps)
  const outside = new Set<Steps>()
  const add = (entered: Steps): void => {
    for (const step of entered) {
      for (const maker of before[step] ?? []) {
        const part = partOf[maker]
        if (part !== undefined && !inside.has(maker)) outside.add(part)
      }
    }
  }
  add(steps)
  for (const part of outside) {
    if (part.some((step) => before[step]?.some((maker) => inside.has(maker)))) return true
    add(part)
  }
  return false
}

/** Finds which steps wait for which: for what they read, or because they depend on them. */
function orderOf({ steps, tensors }: Pick<EnsemblePlan, 'steps' | 'tensors'>) {
  const before = steps.map(({ reads, dependsOn }) => [
    ...new Set([...reads.flatMap((tensor) => tensors[tensor]?.step ?? []), ...dependsOn]),
  ])
  const after = steps.map(({ index }) =>
    steps.flatMap((step) => (before[step.index]?.includes(index) ? step.index : [])),
  )
  /** Lists all steps that a step waits for, or that wait for it, ascending. */
  const behind = (step: number, side: 'before' | 'after'): Steps => {
    const next = side === 'before' ? before : after
    const found = new Set(next[step])
    for (const one of found) for (const other of next[one] ?? []) found.add(other)
    return [...found].toSorted((a, b) => a - b)
  }
  /** Lists the steps that a step depends on without reading them, and those that depend on it. */
  const linked = (step: number): Steps =>
    steps.flatMap(({ index, dependsOn }) => {
      if (index === step) return dependsOn
      return dependsOn.includes(step) ? index : []
    })
  return { before, behind, linked }
}
