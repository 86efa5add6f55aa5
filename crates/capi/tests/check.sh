# Runs the programs in a folder: signatures for OpenSSL, powers for Python's pow, and wrong arguments. check.sh FOLDER
set -eu
keys=../../tests/keys
key=$keys/rsa2048-pkcs8.pem
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

openssl pkcs8 -topk8 -in "$key" -passout 'pass:correct horse' -out "$dir/encrypted"
"$1/hostile" "$key" "$dir/encrypted"

printf message > "$dir/message"
openssl pkey -in "$key" -pubout -out "$dir/public"
verify() {
  "$1/sign_file" "$key" "$dir/message" "$dir/signature" "$2"
  shift 2
  openssl dgst "$@" -verify "$dir/public" -signature "$dir/signature" "$dir/message"
}
bits=256
for number in 1 2 3; do
  verify "$1" $number -sha$bits
  verify "$1" $((number + 4)) -sha$bits -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
  bits=$((bits + 128))
done
if "$1/sign_file" "$dir/message" "$dir/message" "$dir/signature" 1 2> "$dir/error"; then
  echo "a message is no key" >&2
  exit 1
fi
grep -q . "$dir/error"

python3 tests/powers.py > "$dir/numbers"
"$1/powmod" < "$dir/numbers" > "$dir/powers"
python3 tests/powers.py "$dir/numbers" | cmp - "$dir/powers"
echo "powers agree with Python's"
