import { readFile } from 'node:fs/promises'
import { cel } from '@tutti/api'
import t from 'tap'
import { z } from 'zod'
import { buildCrd, KINDS } from './crds.ts'
import { buildGeneratedFiles } from './generated-files.ts'
import { renderReference } from './reference-page.ts'
import { toStructuralSchema } from './structural-schema.ts'

await t.test('what is committed is what the schemas give', async (t) => {
  for (const [path, text] of buildGeneratedFiles()) {
    t.equal(await readFile(new URL(`../../../${path}`, import.meta.url), 'utf8'), text, path)
  }
})

await t.test('every field of a status, and of a Router, says what it is', async (t) => {
  const sections = renderReference().split(/^### /m)
  const statuses = sections.filter((section) => /^\w+: status|^Router: spec/.test(section))
  t.equal(statuses.length, KINDS.length + 1)
  const mute = statuses.flatMap((section) =>
    section.split('\n').filter((line) => /\| +\|$/.test(line)),
  )
  // These fields are those of autoscaling/v2, as in a Model.
  t.same(
    mute.filter((line) => !/^\| `(builtins\.)?scaling\./.test(line)),
    [],
  )
})

await t.test('a CRD stays below what kubectl apply can remember', async (t) => {
  for (const definition of KINDS) {
    t.ok(JSON.stringify(buildCrd(definition)).length < 256 * 1024, definition.kind)
  }
})

await t.test('the generator refuses what Kubernetes could not check', async (t) => {
  const bounded = z.string().max(3)
  const cases: [string, z.ZodType, RegExp][] = [
    ['a text without a bound', z.string(), /\.x: a string has no bound/],
    ['a list without a bound', z.array(z.boolean()), /\.x: a array has no bound/],
    ['a map without a bound', z.record(z.string(), z.boolean()), /\.x: a object has no bound/],
    ['a number without a bound', z.int(), /\.x: a integer has no bound/],
    ['a fraction', z.number().min(0).max(1), /\.x: a number has no bound/],
    ['a refinement', z.boolean().refine((x) => x), /x: a refinement has no CEL rule/],
    [
      'a number without bounds, or text',
      z.union([z.number(), bounded]).meta({ 'x-kubernetes-preserve-unknown-fields': true }),
      /\.x: a number or text wants a number with bounds/,
    ],
    ['a choice of shapes', z.union([z.boolean(), z.object({})]), /no keyword 'anyOf'/],
    ['anything', z.unknown(), /\.x: a node has no type/],
    [
      'a look ahead',
      z
        .string()
        .max(3)
        .regex(/^(?=a)a$/),
      /RE2 does not know/,
    ],
    [
      'a reference back',
      z
        .string()
        .max(3)
        .regex(/^(a)\1$/),
      /RE2 does not know/,
    ],
    ['a format', z.email().max(3).meta({ contentMediaType: 'x' }), /no keyword/],
  ]
  for (const [name, schema, message] of cases) {
    t.throws(() => toStructuralSchema(z.strictObject({ x: schema })), { message }, name)
  }
  t.throws(() => toStructuralSchema(z.object({ x: z.date() })), 'what JSON schema has no words for')
  const rule = { rule: "self != 'a'", message: 'want another' }
  t.same(toStructuralSchema(cel(bounded, rule)), {
    type: 'string',
    maxLength: 3,
    'x-kubernetes-validations': [{ rule: "self != 'a'", message: 'want another' }],
  })
  const matches = { rule: "self.matches('^a+$')", message: 'want a' }
  t.same(
    toStructuralSchema(cel(bounded.regex(/^a+$/), matches)),
    {
      type: 'string',
      maxLength: 3,
      'x-kubernetes-validations': [{ rule: "self.matches('^a+$')", message: 'want a' }],
    },
    'a pattern that a rule says in words is not shown',
  )
})
