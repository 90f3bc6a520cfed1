import { useId, useRef, useState } from 'preact/hooks'
import type { Tensor } from '../../api/model-detail.ts'
import { shapeOf } from '../parts.tsx'
import { loadFile } from './load-file.ts'
import { isScale, SCALES } from './pixel-values.ts'
import { type Draft, isDecoded } from './request-input.ts'

interface InputFieldProps {
  readonly tensor: Tensor
  readonly draft: Draft
  /** Why the draft is no tensor; '' if it is one, or was not touched yet. */
  readonly problem: string
  /** Takes how the draft becomes another: files come late. */
  readonly change: (edit: (draft: Draft) => Draft) => void
}

/** Shows the fields in which a user fills one input of a request. */
export function InputField({ tensor, draft, problem, change }: InputFieldProps) {
  const id = useId()
  const { file } = draft
  const isText = tensor.datatype === 'BYTES'
  return (
    <fieldset class="input">
      <legend>
        {tensor.name} <span class="type quiet">{shapeOf(tensor)}</span>
        {tensor.isOptional && <span class="quiet"> optional</span>}
      </legend>
      {file === undefined && (
        <label>
          {isText ? 'Text, or a JSON array of texts' : 'JSON'}
          <textarea
            rows={2}
            spellcheck={false}
            value={draft.text}
            aria-invalid={problem !== ''}
            aria-describedby={`${id}-problem`}
            onInput={({ currentTarget: { value } }) =>
              change((old) => ({ ...old, text: value, isTouched: true }))
            }
          />
        </label>
      )}
      <FileField tensor={tensor} draft={draft} change={change} problemId={`${id}-problem`} />
      <p id={`${id}-problem`} class="reason">
        {problem}
      </p>
    </fieldset>
  )
}

function FileField({
  tensor,
  draft,
  change,
  problemId,
}: Omit<InputFieldProps, 'problem'> & { readonly problemId: string }) {
  const { failure, choose } = useFile(change)
  const { file, scale } = draft
  if (file === undefined) {
    return (
      <>
        <label class="row">
          or a file
          <input
            type="file"
            aria-describedby={problemId}
            onChange={(event) => void choose(event.currentTarget.files?.[0])}
          />
        </label>
        {failure !== '' && <p class="reason">{failure}</p>}
      </>
    )
  }
  const size = `${file.bytes.byteLength.toLocaleString('en')} bytes`
  const { picture } = file
  const isFloat = /^(FP|BF)/.test(tensor.datatype)
  return (
    <div class="row">
      <span class="mono">{file.name}</span>
      <span class="quiet">{picture ? `${picture.width} x ${picture.height} pixels` : size}</span>
      {picture && isFloat && isDecoded(tensor) && (
        <label class="row">
          Values
          <select
            value={scale}
            onChange={({ currentTarget: { value } }) =>
              isScale(value) && change((old) => ({ ...old, scale: value }))
            }
          >
            {SCALES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      )}
      <button
        type="button"
        class="plain"
        onClick={() => change((old) => ({ ...old, file: undefined }))}
      >
        Remove file
      </button>
    </div>
  )
}

/** Loads the file that was chosen last. */
function useFile(change: InputFieldProps['change']) {
  const [failure, setFailure] = useState('')
  const latest = useRef<File>(undefined)
  const choose = async (chosen: File | undefined): Promise<void> => {
    latest.current = chosen
    if (chosen === undefined) return
    const [loaded, problem] = await loadFile(chosen).then(
      (one) => [one, ''] as const,
      (error: unknown) => [undefined, String(error)] as const,
    )
    if (latest.current !== chosen) return
    setFailure(problem)
    if (loaded !== undefined) change((old) => ({ ...old, file: loaded, isTouched: true }))
  }
  return { failure, choose }
}
