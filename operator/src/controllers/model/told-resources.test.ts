import { ModelStatus } from '@tutti/api'
import t from 'tap'
import { modelWorld } from '../../testing/model-world.ts'
import { summarize } from './summarize.ts'

const told = (o: Parameters<typeof modelWorld>[0]) =>
  ModelStatus.parse(summarize(modelWorld(o), 0)).resources

await t.test('resources are those of the pods that there are', (t) => {
  const resources = { requests: { cpu: '1' }, from: 'cpu: spec.resources' }
  const before = { resources: { requests: { cpu: '2' }, from: 'cpu: spec.resources' } }
  t.same(told({ resources, before }), resources)
  t.same(told({ before }), before.resources, 'the spec is refused')
  const paused = { fields: { paused: true }, template: 't2' }
  t.same(told({ resources, before, ...paused }), before.resources)
  t.end()
})
