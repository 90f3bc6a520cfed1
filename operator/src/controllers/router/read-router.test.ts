import t from 'tap'
import { readRouter } from './read-router.ts'

const STRICT = { allowsImage: false, allowsHostAccess: false }

const problemOf = (spec: object, o = STRICT) => readRouter({ spec }, o).problem

await t.test('a podTemplate adds what gives no rights', async (t) => {
  const podTemplate = {
    metadata: { labels: { team: 'a' }, annotations: { note: 'b' } },
    spec: { priorityClassName: 'high', topologySpreadConstraints: [] },
  }
  t.equal(problemOf({ podTemplate, builtins: { podTemplate } }), undefined)
})

await t.test('containers take the right to choose an image: they get the token', async (t) => {
  const isAllowed = { ...STRICT, allowsImage: true }
  for (const list of ['containers', 'initContainers', 'ephemeralContainers']) {
    const podTemplate = { spec: { [list]: [{ name: 'main', env: [] }] } }
    t.match(
      problemOf({ podTemplate }),
      `podTemplate.spec.${list}: got containers, want none; remove spec.podTemplate.spec.${list}, or set router.allowImage`,
    )
    t.match(problemOf({ builtins: { podTemplate } }), `builtins.podTemplate.spec.${list}: got`)
    t.equal(problemOf({ podTemplate, builtins: { podTemplate } }, isAllowed), undefined)
  }
  t.match(problemOf({ image: 'own:1' }), "image: got 'own:1', want none")
})

await t.test('access to nodes is not in it', async (t) => {
  const podTemplate = { spec: { hostNetwork: true } }
  t.match(
    problemOf({ podTemplate }),
    'podTemplate.spec.hostNetwork: got true, want false; access to nodes takes',
  )
  t.match(
    problemOf({ builtins: { podTemplate } }),
    'builtins.podTemplate.spec.hostNetwork: got true',
  )
  t.equal(problemOf({ podTemplate }, { ...STRICT, allowsHostAccess: true }), undefined)
  const privileged = {
    spec: { containers: [{ name: 'a', securityContext: { privileged: true } }] },
  }
  const o = { ...STRICT, allowsImage: true }
  t.match(problemOf({ podTemplate: privileged }, o), 'securityContext.privileged: got true')
})
