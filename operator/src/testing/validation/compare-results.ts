import { join } from 'node:path'
import { parseManifest } from '@tutti/api'
import type { Test } from 'tap'
import { checkInMemory } from './check-in-memory.ts'
import type { CheckResult } from './check-result.ts'
import { randomNamespace } from './random-namespace.ts'
import { writeRepository } from './repository.ts'
import { runValidate } from './run-validate.ts'

/** The results of both for one resource. */
interface Compared {
  readonly validate: CheckResult | undefined
  readonly operator: CheckResult | undefined
}

/**
 * Checks random namespaces of `count` seeds with `tutti validate` and with the operator's controllers, and tests that both agree.
 *
 * @param o.hasRepository - true if both know the models of REPOSITORY. `tutti validate` then expects no other models.
 * @returns all reasons of `tutti validate`.
 */
export async function compareResults(
  t: Test,
  o: { readonly firstSeed: number; readonly count: number; readonly hasRepository: boolean },
): Promise<ReadonlySet<string>> {
  const seeds = Array.from({ length: o.count }, (_, i) => o.firstSeed + i)
  const sets = seeds.map((seed) => ({ seed, ...randomNamespace(seed, o) }))
  const broken = sets.filter(({ manifests }) =>
    manifests.some((manifest) => !parseManifest(manifest['kind'], manifest).success),
  )
  t.same(broken.slice(0, 1), [], `${broken.length} namespaces break the schema`)
  const folder = t.testdir()
  const repository = join(folder, 'repository')
  if (o.hasRepository) await writeRepository(repository)
  const validated = await runValidate(
    join(folder, 'manifests'),
    sets.map(({ manifests }) => manifests),
    o.hasRepository ? [`--model-repository=${repository}`] : [],
  )
  const reasons = new Set<string>()
  const different = []
  let count = 0
  for (const [i, { seed, manifests, faults }] of sets.entries()) {
    const operator = await checkInMemory(manifests, o)
    for (const { kind, metadata } of manifests) {
      const resource = `${kind}/${metadata.name}`
      const both = { validate: validated[i]?.get(resource), operator: operator.get(resource) }
      if (!isSame(both)) different.push({ seed, resource, faults, ...both })
      reasons.add(both.validate?.reason ?? '')
      count += 1
    }
  }
  const around = o.hasRepository ? 'with a model repository' : 'from manifests alone'
  t.same(different.slice(0, 5), [], `${different.length} of ${count} differ ${around}`)
  return reasons
}

/**
 * True if both say the same, in the same words.
 *
 * A name that no Model or Ensemble serves never appears in a whole repository; in a cluster it may be applied next, so that the
 * operator tells it last. This is the one difference that is meant.
 */
function isSame({ validate, operator }: Compared): boolean {
  if (validate === undefined || operator === undefined) return false
  if (validate.reason === operator.reason && validate.message === operator.message) return true
  const { problems = [] } = validate
  const lasting = problems.filter((problem) => !WILL_NEVER_COME.test(problem))
  if (lasting.length === problems.length) return false
  const told = operator.message.replace(AND_MORE, '')
  const shown = told.split('; also ')
  const isWhole = told === operator.message
  return (
    shown.every((problem) => lasting.includes(problem) || PENDING.test(problem)) &&
    (!isWhole || (shown.length === problems.length && lasting.every((one) => shown.includes(one))))
  )
}

const WILL_NEVER_COME = /Ref\.name: no Model or Ensemble serves '/
const PENDING = /Ref: no Model or Ensemble serves '.+' yet; /
const AND_MORE = /; and \d+ more, which tutti validate lists$/
