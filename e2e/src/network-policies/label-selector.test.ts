import t from 'tap'
import { type LabelRequirement, selects } from './label-selector.ts'

const LABELS = { app: 'db', tier: '' }

await t.test('all labels that are named have to be there, and none need be', async (t) => {
  t.equal(selects({}, {}), true)
  t.equal(selects({ matchLabels: {}, matchExpressions: [] }, LABELS), true)
  t.equal(selects({ matchLabels: { app: 'db' } }, LABELS), true)
  t.equal(selects({ matchLabels: { app: 'db', tier: '' } }, LABELS), true)
  t.equal(selects({ matchLabels: { app: 'db', other: 'x' } }, LABELS), false)
  t.equal(selects({ matchLabels: { app: 'DB' } }, LABELS), false)
  t.equal(selects({ matchLabels: { toString: 'x' } }, {}), false)
})

await t.test('what an expression wants', async (t) => {
  const cases: readonly (readonly [LabelRequirement, boolean])[] = [
    [{ key: 'app', operator: 'In', values: ['web', 'db'] }, true],
    [{ key: 'app', operator: 'In', values: ['web'] }, false],
    [{ key: 'none', operator: 'In', values: [''] }, false],
    [{ key: 'tier', operator: 'In', values: [''] }, true],
    [{ key: 'app', operator: 'NotIn', values: ['web'] }, true],
    [{ key: 'app', operator: 'NotIn', values: ['web', 'db'] }, false],
    [{ key: 'none', operator: 'NotIn', values: ['db'] }, true],
    [{ key: 'tier', operator: 'Exists' }, true],
    [{ key: 'none', operator: 'Exists' }, false],
    [{ key: 'constructor', operator: 'Exists' }, false],
    [{ key: 'tier', operator: 'DoesNotExist' }, false],
    [{ key: 'none', operator: 'DoesNotExist' }, true],
  ]
  for (const [requirement, expected] of cases) {
    const text = JSON.stringify(requirement)
    t.equal(selects({ matchExpressions: [requirement] }, LABELS), expected, text)
  }
  const unknown = { matchExpressions: [{ key: 'app', operator: 'Gt', values: ['1'] }] }
  t.throws(() => selects(unknown, LABELS), /operator: got Gt, want In/)
})

await t.test('labels and expressions have to hold together', async (t) => {
  const isDb = { matchLabels: { app: 'db' } }
  const hasNoTier: LabelRequirement = { key: 'tier', operator: 'DoesNotExist' }
  const hasApp: LabelRequirement = { key: 'app', operator: 'Exists' }
  t.equal(selects({ ...isDb, matchExpressions: [hasApp] }, LABELS), true)
  t.equal(selects({ ...isDb, matchExpressions: [hasApp, hasNoTier] }, LABELS), false)
})
