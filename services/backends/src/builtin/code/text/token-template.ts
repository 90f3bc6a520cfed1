import { z } from 'zod'
import { type Part, partsOf, UnsupportedPart } from './tokenizer-parts.ts'

/** A place in the tokens of a text: special tokens, or the first or the second text. */
export type TemplateItem =
  | { readonly ids: readonly number[]; readonly type: number }
  | { readonly text: 'A' | 'B'; readonly type: number }

/** Where the tokens of one text, or of a pair, stand among special tokens. */
export interface TokenTemplate {
  readonly single: readonly TemplateItem[]
  readonly pair: readonly TemplateItem[]
}

const PLAIN: TokenTemplate = {
  single: [{ text: 'A', type: 0 }],
  pair: [
    { text: 'A', type: 0 },
    { text: 'B', type: 1 },
  ],
}

/** Reads the template of a post-processor. @throws UnsupportedPart */
export function readTemplate(part: Part | null): TokenTemplate {
  if (part === null || part.type === 'ByteLevel') return PLAIN
  if (part.type === 'Sequence') {
    const others = partsOf(part['processors']).filter(({ type }) => type !== 'ByteLevel')
    if (others.length < 2) return readTemplate(others[0] ?? null)
  }
  const read = READERS[part.type]
  if (read !== undefined) return read(part)
  const known = [...Object.keys(READERS), 'ByteLevel'].join(', ')
  throw new UnsupportedPart(`post_processor ${JSON.stringify(part.type)}, want one of ${known}`)
}

const READERS: Readonly<Record<string, (part: Part) => TokenTemplate>> = {
  BertProcessing: (part) => {
    const [cls, sep] = [special(part['cls'], 0), special(part['sep'], 0)]
    const single = [cls, { text: 'A', type: 0 }, sep] as const
    return { single, pair: [...single, { text: 'B', type: 1 }, { ...sep, type: 1 }] }
  },
  RobertaProcessing: (part) => {
    const [cls, sep] = [special(part['cls'], 0), special(part['sep'], 0)]
    const single = [cls, { text: 'A', type: 0 }, sep] as const
    return { single, pair: [...single, sep, { text: 'B', type: 0 }, sep] }
  },
  TemplateProcessing: (part) => {
    const { single, pair, special_tokens: tokens } = Template.parse(part)
    const read = (items: readonly TemplatePiece[]): readonly TemplateItem[] =>
      items.map((item) => {
        if ('Sequence' in item) return { text: item.Sequence.id, type: item.Sequence.type_id }
        const { id, type_id: type } = item.SpecialToken
        const ids = tokens[id]?.ids
        if (ids === undefined) throw new UnsupportedPart(`special token ${id} without ids`)
        return { ids, type }
      })
    return { single: read(single), pair: read(pair) }
  },
}

const TemplatePiece = z.union([
  z.object({ SpecialToken: z.object({ id: z.string(), type_id: z.int() }) }),
  z.object({ Sequence: z.object({ id: z.enum(['A', 'B']), type_id: z.int() }) }),
])
type TemplatePiece = z.infer<typeof TemplatePiece>
const Template = z.object({
  single: z.array(TemplatePiece),
  pair: z.array(TemplatePiece),
  special_tokens: z.record(z.string(), z.object({ ids: z.array(z.int()) })),
})

function special(
  value: unknown,
  type: number,
): { readonly ids: readonly number[]; readonly type: number } {
  const id: unknown = Array.isArray(value) ? value[1] : undefined
  if (typeof id !== 'number') throw new UnsupportedPart(`a special token ${JSON.stringify(value)}`)
  return { ids: [id], type }
}

/** Leaves out special tokens. */
export function withoutSpecials({ single, pair }: TokenTemplate): TokenTemplate {
  return { single: single.filter(isText), pair: pair.filter(isText) }
}

function isText(item: TemplateItem): boolean {
  return 'text' in item
}

/** Counts special tokens. */
export function countSpecials(items: readonly TemplateItem[]): number {
  return items.reduce((count, item) => count + ('ids' in item ? item.ids.length : 0), 0)
}
