// In place of the runtime of the model: the vectors of the queries that the tests ask are in a file.
export const env = { backends: { onnx: { wasm: {} } } };

export async function pipeline() {
  const vectors = await (await fetch(`${env.localModelPath}vectors.json`)).json();
  return async (query) => ({ data: Float32Array.from(vectors[query]) });
}
